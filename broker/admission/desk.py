"""Where a running broker makes invites, and answers those who come with a code.

Owns what is checked before somebody is admitted, and what a grant holds. Must not know HTTP, nor
how the network's state is kept. Invariant: an invite is used up by the answer that admits somebody
and by no other; no answer but that one holds anything that is secret.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from broker.admission import invites, seal
from broker.admission.authority import Authority, AuthorityError, load_authority
from broker.admission.code import (
    ADDRESS_CHARS_MAX,
    ID_BYTES,
    SECRET_BYTES,
    InviteCode,
    written,
)
from broker.admission.messages import (
    Admission,
    Certificates,
    Enquiry,
    JoinRequest,
    SealedAdmission,
)
from broker.config import Config, is_loopback
from broker.links.securing import LinkConfigError, load_security
from broker.rights.names import NAME_PATTERN, NAME_SAYS

ANYWHERE = frozenset(("0.0.0.0", "::"))  # noqa: S104  # compared with, not listened on
UNLINKED = (
    "other brokers cannot link to this one; set `host` under [links] to an address that they reach"
)
UNSIGNED = (
    "links need certificates here, and this broker cannot sign them; set `tls_ca_key` under "
    "[links] to the key of `tls_ca`, or ask a broker that has it"
)
ADDRESS_SAYS = "`address` has to be the http:// or https:// address by which others reach this one"

Outcome = tuple[int, Mapping[str, Any]]


class Desk:
    """Admits brokers to the network of the broker with this configuration.

    `port` tells where it listens for links (0: nowhere), `names` which brokers are known.
    """

    def __init__(
        self, config: Config, port: Callable[[], int], names: Callable[[], Sequence[str]]
    ) -> None:
        self._config = config
        self._port = port
        self._names = names
        self._invites = invites.Invites()
        self._turn = asyncio.Lock()

    async def invite(self, address: str, *, trusted: bool = False) -> Outcome:
        """Make an invite, for who asks at `address`; status and answer with its code.

        Where links need certificates and `trusted` holds, the new broker may sign them as well.
        """
        if not re.fullmatch(r"https?://[^\s/]\S*", address) or len(address) > ADDRESS_CHARS_MAX:
            return _refusal(422, ADDRESS_SAYS)
        async with self._turn:
            port = self._port()
            try:
                # In a thread: the package is large, and files are read.
                await asyncio.to_thread(self._grant, port)
                code = InviteCode(
                    secrets.token_bytes(ID_BYTES), secrets.token_bytes(SECRET_BYTES), address
                )
                self._invites.make(code.id, code.secret, _now_ms(), trusted=trusted)
            except (_RefusedError, invites.InviteError) as error:
                return _refusal(409, str(error))
        return 200, {"ok": True, "code": written(code), "holds_s": invites.HOLDS_MS // 1_000}

    async def join(self, body: bytes) -> Outcome:
        """Answer who comes with a code: all that a new broker needs, or why it is not admitted."""
        try:
            enquiry = msgspec.json.decode(body, type=Enquiry)
            identifier = bytes.fromhex(enquiry.invite)
        except (msgspec.DecodeError, ValueError):
            return _refusal(422, "this is no request to join; `headwater join CODE` makes one")
        async with self._turn:
            try:
                invite = self._invites.holding(identifier, _now_ms())
                plain = await asyncio.to_thread(_opened, invite, identifier, enquiry.sealed)
                request = msgspec.msgpack.decode(plain, type=JoinRequest)
                self._check_name(request.name)
                grant = await asyncio.to_thread(
                    self._grant, self._port(), request, trusted=invite.trusted
                )
                sealed = seal.seal_answer(
                    invite.secret, enquiry.sealed, request.agreeing, msgspec.msgpack.encode(grant)
                )
            except (invites.InviteError, _RefusedError, seal.SealError) as error:
                return _refusal(409, str(error))
            except msgspec.DecodeError:
                return _refusal(422, "this request to join is of another version of Headwater")
            self._invites.use(invite, request.name, _now_ms())
        return 200, msgspec.to_builtins(SealedAdmission(ok=True, sealed=sealed))

    def _check_name(self, name: str) -> None:
        """Raise _RefusedError where a broker may not be called so."""
        if not re.fullmatch(NAME_PATTERN, name):
            raise _RefusedError(f"a broker's name is {NAME_SAYS}; give another with --name")
        if name in self._names() or self._invites.is_given(name, _now_ms()):
            why = f"the network has a broker `{name}`, or one was invited by that name just now"
            again = "the code still holds: give another name with --name"
            raise _RefusedError(f"{why}; {again}")

    def _grant(
        self, port: int, request: JoinRequest | None = None, *, trusted: bool = False
    ) -> Admission:
        """Return what the asker is given, or check that it could be. Raises _RefusedError."""
        links = self._config.links
        if not port:
            raise _RefusedError(UNLINKED)
        try:
            seal.needed()
            valid = load_security(links).secrets
            certificates = None
            if links.tls_cert or links.tls_ca:
                if not (links.tls_ca and links.tls_ca_key):
                    raise _RefusedError(UNSIGNED)
                authority = load_authority(links.tls_ca, links.tls_ca_key)
                certificates = self._certificates(authority, request, trusted=trusted)
        except (seal.PackageMissingError, LinkConfigError, AuthorityError) as error:
            raise _RefusedError(str(error)) from None
        host = "" if links.host in ANYWHERE or is_loopback(links.host) else links.host
        return Admission(
            broker=self._config.broker.name,
            host=host,
            port=port,
            secrets=tuple(secret.decode() for secret in valid if secret),
            seeds=links.seeds,
            discover=links.discover,
            certificates=certificates,
            alike=self._alike(),
        )

    def _certificates(
        self, authority: Authority, request: JoinRequest | None, *, trusted: bool
    ) -> Certificates | None:
        if request is None:
            return None
        return Certificates(
            own=authority.signed(request.name, request.key),
            authority=authority.certificate,
            authority_key=authority.key if trusted else b"",
            demanded=self._config.links.tls_client_certificates,
        )

    def _alike(self) -> dict[str, dict[str, bool | int]]:
        """Return the settings that all brokers of a network need alike."""
        config = self._config
        return {
            "links": {"correlate": config.links.correlate},
            "link_limits": {"message_bytes_max": config.link_limits.message_bytes_max},
            "coordinator": {
                "enabled": config.coordinator.enabled,
                "split_windows": config.coordinator.split_windows,
            },
        }


class _RefusedError(Exception):
    """Somebody cannot be admitted; the text is a sentence for a person."""


def _opened(invite: invites.Invite, identifier: bytes, sealed: bytes) -> bytes:
    """Return what is asked; a wrong secret is counted. Raises SealError, _RefusedError."""
    try:
        return seal.open_request(invite.secret, identifier, sealed)
    except seal.PackageMissingError as error:
        raise _RefusedError(str(error)) from None
    except seal.SealError as error:
        invite.wrong += 1
        raise seal.SealError(f"the request to join is refused: {error}") from None


def _refusal(status: int, sentence: str) -> Outcome:
    return status, {"ok": False, "errors": [{"message": sentence}]}


def _now_ms() -> int:
    return int(time.monotonic() * 1_000)
