"""The code by which one broker may join, as a person passes it on.

Owns its form. Must not know what it opens. Invariant: a code that was mistyped is told from one
that is whole, without asking anybody; the secret in it is in no text but the code itself.
"""

import base64
import binascii
import hashlib
import re

import msgspec

PREFIX = "join1"  # the digit is the version of the form
ID_BYTES = 8
SECRET_BYTES = 20
ADDRESS_CHARS_MAX = 300
CODE_CHARS_MAX = 1_000
_CHECK_BYTES = 3
_DIGEST = "sha256"


class CodeError(ValueError):
    """A text is no code; the message is a sentence for a person."""


class InviteCode(msgspec.Struct, frozen=True, array_like=True):
    """`id` is what the broker knows the invite by, `address` where it is asked."""

    id: bytes
    secret: bytes
    address: str

    def __repr__(self) -> str:
        """Without the secret."""
        return f"InviteCode(address={self.address!r})"


def written(code: InviteCode) -> str:
    """Return the code as a person passes it on: small letters and digits."""
    data = msgspec.msgpack.encode(code)
    text = base64.b32encode(_check(data) + data).decode().rstrip("=").lower()
    return PREFIX + text


def read(text: str) -> InviteCode:
    """Return what a code says; capitals and blanks within do no harm. Raises CodeError."""
    text = re.sub(r"\s", "", text).lower()
    if not text.startswith(PREFIX) or len(text) > CODE_CHARS_MAX:
        raise CodeError(f"this is no code; one begins with `{PREFIX}`, see `headwater invite`")
    letters = text[len(PREFIX) :].upper()
    try:
        data = base64.b32decode(letters + "=" * (-len(letters) % 8))
        check, data = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
        code = msgspec.msgpack.decode(data, type=InviteCode)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise CodeError("the code is not whole; copy it once more") from None
    sizes = len(code.id), len(code.secret)
    if check != _check(data) or sizes != (ID_BYTES, SECRET_BYTES):
        raise CodeError("the code is not whole; copy it once more")
    return code


def _check(data: bytes) -> bytes:
    return hashlib.new(_DIGEST, data).digest()[:_CHECK_BYTES]
