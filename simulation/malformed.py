"""Payloads with something wrong in them, and the reason that each must be refused for.

Owns the table. Must not know who sends them. Invariant: what is wrong with a payload is so whatever
topic it comes on, so long as the topic's type has a number `val` and its source is not "nobody".
"""

from __future__ import annotations

BAD: tuple[tuple[bytes, str], ...] = (
    (b"{", "not_json"),
    (b"\xff\xfe", "not_json"),
    (b"[]]", "not_json"),
    (b"[" * 100, "too_deep"),
    (b'"warm"', "not_an_event"),
    (b'{"timestamp": 0, "val": NaN}', "not_finite"),
    (b'{"timestamp": 0, "val": 1e999}', "not_finite"),
    (b'{"timestamp": 0, "val": "warm"}', "wrong_type"),
    (b'{"timestamp": "soon", "val": 1}', "bad_time"),
    (b'{"start": 5, "end": 4, "val": 1}', "start_after_end"),
    (b'{"timestamp": 0, "val": 1, "uncertainty": -1}', "negative_uncertainty"),
    (b'{"timestamp": 9000000000000, "val": 1}', "too_far_in_future"),
    (b'{"timestamp": 0, "val": 1, "position": [91, 0]}', "bad_position"),
    (b'{"timestamp": 0, "val": 1, "source": "nobody"}', "topic_mismatch"),
    (b'{"timestamp": 0, "val": 1, "more": ' + b"[" * 20 + b"]" * 20 + b"}", "too_deep"),
)
