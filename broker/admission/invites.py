"""Which invites hold, which are used and which are over.

Owns their life. Must not know clocks, randomness or what an invite is for: `now_ms` and all random
bytes come in. Invariant: an invite is used at most once, and never after its time; how many are
kept is bounded, and whoever guesses at one that holds has `WRONG_MAX` tries.
"""

import msgspec

HOLDS_MS = 600_000
KNOWN_MS = 3_600_000  # how long it is told that a code is used or over
INVITES_MAX = 100
WRONG_MAX = 10
MAKE_ANOTHER = "have another made with `headwater invite`"
UNKNOWN = (
    "this broker knows no such code; a code holds for ten minutes, and no longer than the broker "
    f"that made it runs: {MAKE_ANOTHER}"
)
USED = f"this code is used; it admits one broker: {MAKE_ANOTHER}"
OVER = f"this code is over; it holds for ten minutes: {MAKE_ANOTHER}"
GUESSED = f"this code was tried with a wrong secret too often, and is over: {MAKE_ANOTHER}"
FULL = f"{INVITES_MAX} codes were made in the last hour; wait until some of them are forgotten"


class InviteError(Exception):
    """An invite does not hold, or none can be made; the text is a sentence for a person."""


class Invite(msgspec.Struct):
    """One invite; `trusted`: the broker that uses it may invite others where there is TLS."""

    secret: bytes
    made_ms: int
    trusted: bool = False
    used: bool = False
    wrong: int = 0

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Invite(used={self.used})"


class Invites:
    """The invites of one broker, by their identifiers."""

    def __init__(self) -> None:
        self._invites: dict[bytes, Invite] = {}
        self._names: dict[str, int] = {}  # that were given out, and when

    def make(self, identifier: bytes, secret: bytes, now_ms: int, *, trusted: bool = False) -> None:
        """Have a new invite hold from now on. Raises InviteError."""
        self._forget(now_ms)
        if len(self._invites) >= INVITES_MAX:
            raise InviteError(FULL)
        self._invites[identifier] = Invite(secret, now_ms, trusted)

    def holding(self, identifier: bytes, now_ms: int) -> Invite:
        """Return an invite that holds. Raises InviteError."""
        self._forget(now_ms)
        invite = self._invites.get(identifier)
        if invite is None:
            raise InviteError(UNKNOWN)
        if invite.used:
            raise InviteError(USED)
        if now_ms - invite.made_ms >= HOLDS_MS:
            raise InviteError(OVER)
        if invite.wrong >= WRONG_MAX:
            raise InviteError(GUESSED)
        return invite

    def use(self, invite: Invite, name: str, now_ms: int) -> None:
        """Give `name` out by an invite, which is used from now on."""
        invite.used = True
        invite.secret = b""
        self._names[name] = now_ms

    def is_given(self, name: str, now_ms: int) -> bool:
        """Tell whether a name was given out a short while ago."""
        self._forget(now_ms)
        return name in self._names

    def _forget(self, now_ms: int) -> None:
        self._invites = {
            identifier: invite
            for identifier, invite in self._invites.items()
            if now_ms - invite.made_ms < KNOWN_MS
        }
        self._names = {
            name: given_ms for name, given_ms in self._names.items() if now_ms - given_ms < HOLDS_MS
        }
