"""When a broker's certificates end, as their files say now.

Owns the reading of that one field. Must not know what they are for, nor check them: TLS does.
Invariant: whatever a file holds, there is an answer or none, and never an error.
"""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from broker.config import Config

BYTES_MAX: Final = 1_048_576
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
VERSION, UTC_TIME, GENERALIZED_TIME = 0xA0, 0x17, 0x18  # tags


def certificate_ends(config: Config) -> dict[str, int]:
    """Return when each certificate ends, in s, by what it is for.

    Files that tell no end are left out. Of a chain it is the first to end, as it breaks with that;
    of authorities the last, as any of them will do.
    """
    ends = {
        "mqtt": min(_ends(config.mqtt.tls_cert), default=None),
        "links": min(_ends(config.links.tls_cert), default=None),
        "links_authority": max(_ends(config.links.tls_ca), default=None),
    }
    return {purpose: end for purpose, end in ends.items() if end is not None}


def _ends(path: str) -> Iterator[int]:
    if not path:
        return
    try:
        with Path(path).open("rb") as file:
            text = file.read(BYTES_MAX).decode("ascii", "replace")
    except OSError:
        return
    for part in text.split(BEGIN)[1:]:
        body, ended, _ = part.partition(END)
        if ended:
            try:
                yield _end_of(ssl.PEM_cert_to_DER_cert(f"{BEGIN}{body}{END}"))
            except (ValueError, IndexError, OverflowError):
                continue


def _end_of(certificate: bytes) -> int:
    """Return when a certificate ends (RFC 5280, 4.1). Raises ValueError, IndexError."""
    signed = _elements(_elements(certificate)[0][1])[0][1]
    fields = [body for tag, body in _elements(signed) if tag != VERSION]
    tag, moment = _elements(fields[3])[1]  # behind serial number, algorithm and issuer
    form = {UTC_TIME: "%y%m%d%H%M%SZ", GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}.get(tag, "")
    ends = datetime.strptime(moment.decode("ascii"), form).replace(tzinfo=UTC)
    if tag == UTC_TIME and ends.year >= 2050:  # two digits of a year are from 1950 to 2049
        ends = ends.replace(year=ends.year - 100)
    return int(ends.timestamp())


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tags and bodies of what is encoded one behind the other (DER)."""
    elements = []
    start = 0
    while start < len(data):
        tag, size = data[start], data[start + 1]
        start += 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[start : start + digits], "big")
            start += digits
        if start + size > len(data):
            raise ValueError("it ends in the middle of an element")
        elements.append((tag, data[start : start + size]))
        start += size
    return elements
