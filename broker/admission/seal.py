"""What crosses the line, so that nobody but the two ends can read or change it.

Owns the keys and the form of both messages. Must not know what is in them. Invariant: the request
is sealed under the code's secret; the answer under that and under a secret that both ends agree on
for it alone (X25519), so that who has recorded the line and learns the code later reads nothing.

The algorithms are those of the package cryptography, which is asked for here alone and in
`authority`: HKDF with SHA-256, X25519, ChaCha20-Poly1305.
"""

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

NONCE_BYTES = 12
KEY_BYTES = 32
_REQUEST = b"headwater join 1 request "
_ANSWER = b"headwater join 1 answer "
MISSING = (
    "joining needs the package cryptography, at the broker that invites and at the one that joins: "
    "`pip install 'headwater[joining]'` brings it"
)


class SealError(Exception):
    """Bytes that came are not from whoever holds the code, or was changed on its way."""


class PackageMissingError(Exception):
    """The package cryptography is missing; the text says what brings it."""


def needed() -> None:
    """Raise PackageMissingError where the package is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise PackageMissingError(MISSING) from None


class SealedRequest:
    """The end that asks, for one request: `public` is its half of the agreed secret."""

    def __init__(self, secret: bytes, invite: bytes) -> None:
        self._secret = secret
        self._invite = invite
        self._private = _fresh()
        self.public = self._private.public_key().public_bytes_raw()
        self._request = b""

    def seal(self, plain: bytes) -> bytes:
        """Return the request, which has to hold `public`."""
        self._request = _sealed(_derived(self._secret, _REQUEST), plain, self._invite)
        return self._request

    def open(self, answer: bytes) -> bytes:
        """Return what was answered to the request. Raises SealError."""
        shared = _agreed(self._private, answer[:KEY_BYTES])
        aside = _bound(self._request, answer[:KEY_BYTES])
        return _opened(_derived(shared + self._secret, _ANSWER), answer[KEY_BYTES:], aside)


def open_request(secret: bytes, invite: bytes, request: bytes) -> bytes:
    """Return what is asked by `request`. Raises SealError."""
    return _opened(_derived(secret, _REQUEST), request, invite)


def seal_answer(secret: bytes, request: bytes, public: bytes, plain: bytes) -> bytes:
    """Return the answer to `request`, for who has the other half of `public`. Raises SealError."""
    private = _fresh()
    mine = private.public_key().public_bytes_raw()
    key = _derived(_agreed(private, public) + secret, _ANSWER)
    return mine + _sealed(key, plain, _bound(request, mine))


def _fresh() -> "X25519PrivateKey":
    needed()
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate()


def _agreed(private: "X25519PrivateKey", public: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise SealError("it holds no half of a secret to agree on") from None


def _bound(request: bytes, public: bytes) -> bytes:
    """Return what ties an answer to its request."""
    return hashlib.sha256(request).digest() + public


def _derived(secret: bytes, purpose: bytes) -> bytes:
    needed()
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=purpose).derive(secret)


def _sealed(key: bytes, plain: bytes, aside: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = os.urandom(NONCE_BYTES)  # a request may be made more than once under one code
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, plain, aside)


def _opened(key: bytes, sealed: bytes, aside: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce, sealed = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, sealed, aside)
    except (InvalidTag, ValueError):
        raise SealError("it was not made with this code, or was changed on its way") from None
