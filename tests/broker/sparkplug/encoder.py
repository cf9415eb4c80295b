"""Payloads of Sparkplug B, written byte by byte as the encoding of protobuf is defined.

Knows neither the library that the broker reads with nor its descriptors.
"""

import struct

# Of the specification's message `Metric`: the number of each field, and how it is written.
FIELDS = {
    "name": (1, "text"),
    "alias": (2, "varint"),
    "timestamp": (3, "varint"),
    "datatype": (4, "varint"),
    "is_historical": (5, "varint"),
    "is_transient": (6, "varint"),
    "is_null": (7, "varint"),
    "metadata": (8, "bytes"),
    "properties": (9, "bytes"),
    "int_value": (10, "varint"),
    "long_value": (11, "varint"),
    "float_value": (12, "fixed32"),
    "double_value": (13, "fixed64"),
    "boolean_value": (14, "varint"),
    "string_value": (15, "text"),
    "bytes_value": (16, "bytes"),
    "dataset_value": (17, "bytes"),
    "template_value": (18, "bytes"),
}


def varint(number):
    """Seven bits a byte, the lowest first; the eighth says that there is more."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number, kind, value):
    if kind == "varint":
        return varint(number << 3) + varint(int(value))
    if kind == "fixed64":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if kind == "fixed32":
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if kind == "text" else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def metric(**said):
    """A metric; what is not named is left out."""
    return b"".join(field(*FIELDS[name], value) for name, value in said.items())


def payload(*metrics, timestamp=None, seq=None):
    """A payload of metrics, each as `metric` takes it or as bytes."""
    found = b"" if timestamp is None else field(1, "varint", timestamp)
    for one in metrics:
        found += field(2, "bytes", one if isinstance(one, bytes) else metric(**one))
    return found if seq is None else found + field(3, "varint", seq)


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def read(data):
    """What fields a message has: pairs of number and value, without knowing what they mean."""
    found, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            assert key & 7 == 2, "what is read here has no other"
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        found.append((key >> 3, value))
    return found
