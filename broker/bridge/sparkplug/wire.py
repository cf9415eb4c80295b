"""The bytes of a Sparkplug B payload.

Owns the numbers of its fields, as the specification states them. Must not know topics, births or
what a value means. Invariant: the outcome for any bytes is a payload with a bounded number of
metrics, or an UnmappableError.

The descriptors are made here of what the broker reads; protobuf passes over all other fields.
Metrics are read one by one, so that they can be counted before any is made: an empty one takes two
bytes there and some hundred here. Texts are declared as bytes, so that what is no UTF-8 is told
apart from what is no protobuf.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from broker.bridge.mapped_payload import UnmappableError

METRICS_MAX = 10_000  # of a payload; a large edge node has some thousand
NAME_CHARS_MAX = 255  # of a metric that is wanted, as of a path; a longer name is nobody's

TYPE_OF_BOOLEAN = 11
REBIRTH = "Node Control/Rebirth"  # the metric by which an edge node is asked for its births

# Field numbers with the types by which they are read. What has structure is looked at no further.
_METRIC = {
    "name": (1, "bytes"),
    "alias": (2, "uint64"),
    "timestamp": (3, "uint64"),
    "datatype": (4, "uint32"),
    "is_null": (7, "bool"),
}
_VALUES = {
    "int_value": (10, "uint32"),
    "long_value": (11, "uint64"),
    "float_value": (12, "float"),
    "double_value": (13, "double"),
    "boolean_value": (14, "bool"),
    "string_value": (15, "bytes"),
    "bytes_value": (16, "bytes"),
    "dataset_value": (17, "bytes"),
    "template_value": (18, "bytes"),
    "extension_value": (19, "bytes"),
}
_PAYLOAD = {"timestamp": (1, "uint64"), "metrics": (2, "bytes"), "seq": (3, "uint64")}


class NoProtobufError(Exception):
    """The library that reads such payloads is not installed."""


class RawMetric(NamedTuple):
    """A metric as it came; None is what it does not say.

    `carrier` is the field that holds the value, empty where there is none.
    """

    name: str | None
    alias: int | None
    timestamp: int | None
    datatype: int | None
    carrier: str
    value: Any


class RawPayload(NamedTuple):
    """A payload as it came."""

    timestamp: int | None
    seq: int | None
    metrics: list[RawMetric]


def read(data: bytes) -> RawPayload:
    """The payload. Raises UnmappableError."""
    payload_class, metric_class, decode_error = _classes()
    try:
        payload = payload_class.FromString(data)
        if len(payload.metrics) > METRICS_MAX:
            problem = f"found {len(payload.metrics)} metrics, at most {METRICS_MAX}"
            raise UnmappableError(problem)
        metrics = [_metric(metric_class.FromString(raw_metric)) for raw_metric in payload.metrics]
    except decode_error:
        raise UnmappableError("found no payload of Sparkplug B") from None
    return RawPayload(_said(payload, "timestamp"), _said(payload, "seq"), metrics)


def rebirth(now_ms: int) -> bytes:
    """The command to an edge node that it publish its births anew."""
    payload_class, metric_class, _ = _classes()
    metric = metric_class(
        name=REBIRTH.encode(), timestamp=now_ms, datatype=TYPE_OF_BOOLEAN, boolean_value=True
    )
    payload = payload_class(timestamp=now_ms, metrics=[metric.SerializeToString()])
    encoded: bytes = payload.SerializeToString()
    return encoded


def check_installed() -> None:
    """Raise NoProtobufError where no payload could be read."""
    _classes()


def _metric(metric: Any) -> RawMetric:
    carrier = metric.WhichOneof("value") or ""
    value = getattr(metric, carrier) if carrier and not metric.is_null else None
    if carrier == "string_value" and value is not None:
        value = _text(value)
    return RawMetric(
        _text(metric.name) if metric.HasField("name") else None,
        _said(metric, "alias"),
        _said(metric, "timestamp"),
        _said(metric, "datatype"),
        carrier if value is not None else "",
        value,
    )


def _said(message: Any, field: str) -> int | None:
    return int(getattr(message, field)) if message.HasField(field) else None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnmappableError("found a text that is no UTF-8") from None


@cache
def _classes() -> tuple[Any, Any, type[Exception]]:
    """The classes of payloads and of metrics, and what reading raises. Raises NoProtobufError."""
    try:
        from google.protobuf import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
            descriptor_pb2,
            descriptor_pool,
            message,
            message_factory,
        )
    except ImportError:
        raise NoProtobufError from None
    file = descriptor_pb2.FileDescriptorProto(
        name="headwater/sparkplug_b.proto", package="headwater.sparkplug_b", syntax="proto2"
    )
    metric = file.message_type.add(name="Metric")
    metric.oneof_decl.add(name="value")
    for name, field in _METRIC.items():
        _add(metric, name, *field)
    for name, field in _VALUES.items():
        _add(metric, name, *field, oneof_index=0)
    payload = file.message_type.add(name="Payload")
    for name, field in _PAYLOAD.items():
        _add(payload, name, *field, repeated=name == "metrics")
    pool = descriptor_pool.DescriptorPool()  # of our own: others in the process may have the names
    pool.Add(file)
    message_classes = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))
        for name in ("Payload", "Metric")
    ]
    return message_classes[0], message_classes[1], message.DecodeError


def _add(
    message: Any, name: str, number: int, kind: str, *, repeated: bool = False, **more: int
) -> None:
    field = message.field.add(name=name, number=number, **more)
    field.type = getattr(field, f"TYPE_{kind.upper()}")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
