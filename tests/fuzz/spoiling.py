"""Good inputs made bad: bytes changed, cut or doubled, and values within a message exchanged.

Owns the mutations of all fuzz tests. Must not know any format but JSON and MessagePack. Invariant:
what comes out follows from `chance`.
"""

import json

import msgspec

# Where programs go wrong: edges of integers, of floats, of text, and things of another kind.
STRANGE = [
    *(0, -1, 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, True, False, None),
    *(0.0, -0.0, 1e308, 5e-324, float("inf"), float("nan")),
    *("", "\x00", "é", "💥", "#", "+", "a" * 300, "/", "..", "@", "b0/partial@1"),
    *([], [[]], [None] * 40, {}, {"": 0}, b"", b"\x00" * 17),
]
STRANGE_IN_JSON = [one for one in STRANGE if not isinstance(one, bytes)]
DEEP = b"[" * 2_000


def spoil_bytes(chance, data, acts_max=4):
    """Change, cut, double or insert a few bytes; sometimes none."""
    spoilt = bytearray(data)
    for _ in range(chance.randrange(acts_max)):
        at = chance.randrange(len(spoilt) + 1)
        act = chance.random()
        if act < 0.4 and at:
            spoilt[at - 1] = chance.randrange(256)
        elif act < 0.6:
            del spoilt[at : at + chance.randrange(1, 9)]
        elif act < 0.8:
            spoilt[at:at] = spoilt[at : at + chance.randrange(1, 40)]
        elif act < 0.99:
            spoilt[at:at] = chance.randbytes(chance.randrange(1, 5))
        else:
            spoilt[at:at] = DEEP
    return bytes(spoilt)


def spoil_value(chance, value, strange):
    """Exchange something within a message of lists, dictionaries and plain values."""
    if isinstance(value, list) and value and chance.random() < 0.9:
        spoilt = list(value)
        at = chance.randrange(len(spoilt))
        act = chance.random()
        if act < 0.1:
            del spoilt[at]
        elif act < 0.2:
            spoilt.insert(at, spoilt[at])
        else:
            spoilt[at] = spoil_value(chance, spoilt[at], strange)
        return spoilt
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        spoilt = dict(value)
        if chance.random() < 0.2:
            spoilt[chance.choice(("", "x", "timestamp", key + "x"))] = spoilt.pop(key)
        else:
            spoilt[key] = spoil_value(chance, value[key], strange)
        return spoilt
    if isinstance(value, int) and chance.random() < 0.3:
        return min(2**64 - 1, max(-(2**63), value + chance.choice((-1, 1, 2**32))))
    if isinstance(value, str) and value and chance.random() < 0.3:
        return value[: chance.randrange(len(value))]
    return chance.choice(strange)


def spoil_packed(chance, data):
    """Exchange values within a MessagePack message, or else bytes of it."""
    if chance.random() < 0.4:
        return spoil_bytes(chance, data)
    value = msgspec.msgpack.decode(data)
    for _ in range(chance.randrange(1, 3)):
        value = spoil_value(chance, value, STRANGE)
    return msgspec.msgpack.encode(value)


def spoil_json(chance, data):
    """Exchange values within a JSON text, or else bytes of it."""
    if chance.random() < 0.4:
        return spoil_bytes(chance, data)
    value = json.loads(data)
    for _ in range(chance.randrange(1, 3)):
        value = spoil_value(chance, value, STRANGE_IN_JSON)
    return json.dumps(value).encode("utf-8", "surrogatepass")
