"""Users' passwords and programs' tokens: how they are kept and how they are checked.

Owns the text forms ``scrypt$n$r$p$salt$hash`` (salt and hash in base64) and ``sha256$hash``, and
the check of a password or token against them. Must not know over which protocol a user came.
Invariant: neither is ever kept, and a wrong user costs as much time as a wrong password.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple

COST_N = 2**14  # 16 MiB and some tens of ms on a small machine: dear to guess, bearable to check
COST_R = 8
COST_P = 1
SALT_BYTES = 16
HASH_BYTES = 32
MEMORY_BYTES_MAX = 128 * 2**20  # a hash of another tool may ask for more; not for the whole machine
TOKEN_BYTES = 32  # not to be guessed, however fast guesses are checked
MARK = "hw_"  # so that tools that look for secrets in files find it
REMEMBERED_MAX = 1024  # logins that need no second check; past it all are forgotten


def hash_password(password: str) -> str:
    """The text form of a new hash of the password, with a salt of its own."""
    blank = _Hash(COST_N, COST_R, COST_P, secrets.token_bytes(SALT_BYTES), bytes(HASH_BYTES))
    return _encode(blank._replace(digest=_scrypt(password, blank)))


def check_hash(encoded: str) -> None:
    """Raises ValueError, saying what is wrong, where the text is no hash that can be checked."""
    _decode(encoded)


def check_password(password: str, encoded: str) -> bool:
    """Tell whether the password is the one that was hashed; takes tens of milliseconds.

    Raises ValueError where the text is no hash.
    """
    kept = _decode(encoded)
    return hmac.compare_digest(_scrypt(password, kept), kept.digest)


# --- tokens -----------------------------------------------------------------------------------


def new_token() -> str:
    """Return a new token for a program: random, so that a quick hash of it is enough."""
    return MARK + secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str) -> str:
    """Return the text form of a token's hash."""
    return f"sha256${hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def check_token_digest(encoded: str) -> None:
    """Raise ValueError, saying what is wrong, unless the text is a token's hash."""
    if not re.fullmatch(r"sha256\$[0-9a-f]{64}", encoded):
        raise ValueError("a token's hash has the form sha256$hash")


# --- passwords at the door --------------------------------------------------------------------


class Users:
    """Users by name. `login` is slow the first time and quick once a login is known to be good.

    Safe to call from threads: what is remembered is only ever a repetition of a full check.
    """

    def __init__(self, hashes: Mapping[str, str]) -> None:
        """Raises ValueError where one of the hashes is none."""
        for encoded in hashes.values():
            check_hash(encoded)
        self._hashes = dict(hashes)
        # Of no user, so that a wrong name costs the time of a wrong password.
        self._nobody = hash_password(secrets.token_hex()) if self._hashes else ""
        self._key = secrets.token_bytes(32)
        self._known_good: dict[str, bytes] = {}

    def succeeded_by(self, hashes: Mapping[str, str]) -> "Users":
        """Return other users, with the logins known to be good whose hashes are the same.

        Else a reload would keep out devices behind an address from which somebody guesses.
        """
        after = Users(hashes)
        unchanged = [name for name in self._known_good if hashes.get(name) == self._hashes[name]]
        after._key = self._key
        after._known_good = {name: self._known_good[name] for name in unchanged}
        return after

    def __bool__(self) -> bool:
        """Tell whether there is any user; where there is none, nobody is asked for a password."""
        return bool(self._hashes)

    def remembered(self, name: str, password: str) -> bool:
        """Tell whether this login was good before; never slow."""
        digest = self._known_good.get(name)
        return digest is not None and hmac.compare_digest(digest, self._digest(name, password))

    def login(self, name: str, password: str) -> bool:
        """Tell whether the user may come in, within tens of milliseconds: not for an event loop."""
        if self.remembered(name, password):
            return True
        if not self._hashes:
            return False
        encoded = self._hashes.get(name)
        good = check_password(password, encoded or self._nobody)
        if encoded is None or not good:
            return False
        if len(self._known_good) >= REMEMBERED_MAX:
            self._known_good.clear()
        self._known_good[name] = self._digest(name, password)
        return True

    def _digest(self, name: str, password: str) -> bytes:
        """Of no use outside this process: the key is its own."""
        text = f"{len(name)}:{name}:{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, text, "sha256")


class _Hash(NamedTuple):
    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes


def _scrypt(password: str, like: _Hash) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=like.salt,
        n=like.n,
        r=like.r,
        p=like.p,
        maxmem=2 * MEMORY_BYTES_MAX,
        dklen=len(like.digest),
    )


def _encode(kept: _Hash) -> str:
    salt, digest = (base64.b64encode(part).decode() for part in (kept.salt, kept.digest))
    return f"scrypt${kept.n}${kept.r}${kept.p}${salt}${digest}"


def _decode(encoded: str) -> _Hash:
    parts = encoded.split("$")
    if len(parts) != 6 or parts[0] != "scrypt":
        raise ValueError("a password hash has the form scrypt$n$r$p$salt$hash")
    try:
        n, r, p = (int(part) for part in parts[1:4])
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (ValueError, binascii.Error):
        raise ValueError("the password hash holds numbers or base64 that cannot be read") from None
    if n < 2 or n & (n - 1) or r < 1 or p < 1 or not 16 <= len(digest) <= 64 or len(salt) < 8:
        raise ValueError("the password hash has parameters that scrypt does not take")
    if 128 * n * r > MEMORY_BYTES_MAX or p > 16:
        raise ValueError("the password hash asks for more memory or time than is allowed here")
    return _Hash(n, r, p, salt, digest)
