"""Where the MQTT face listens, and where it refuses to.

Owns the listeners' settings, their check and the TLS contexts. Must not know MQTT. Invariant: no
socket beyond loopback is opened without users or client certificates.
"""

import contextlib
import ipaddress
import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct


class ListenError(Exception):
    """A listener cannot or must not be opened; its text is a sentence for a person."""


class Tls(Struct, frozen=True):
    """Files in PEM: the certificate chain, its key, and whose client certificates are taken.

    `required`: of those clients that bring none, nobody is let in; else they log in by password.
    """

    certificate: str
    key: str
    client_ca: str = ""
    required: bool = True


class Listener(Struct, frozen=True):
    """One address; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: Tls | None = None


def check_listeners(listeners: Sequence[Listener], *, users: bool) -> None:
    """Raise `ListenError` where strangers could come in."""
    for listener in listeners:
        demands = listener.tls is not None and listener.tls.client_ca and listener.tls.required
        if not users and not demands and not _loopback(listener.host):
            raise ListenError(
                f'"{listener.host}" can be reached from other machines, and neither users nor a '
                'client CA are configured; configure one of them or listen on "127.0.0.1"'
            )


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The server's context, TLS 1.2 or newer; `ListenError` where a file is no good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in filter(None, (tls.certificate, tls.key, tls.client_ca)):
        _readable(path)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_nobody_to_ask)
    except _LockedKeyError:
        raise ListenError(f"the key {tls.key} is locked with a passphrase; unlock a copy") from None
    except (OSError, ssl.SSLError) as error:
        raise ListenError(
            f"the certificate {tls.certificate} with the key {tls.key} cannot be used: "
            f"{_of_tls(error)}"
        ) from None
    if tls.client_ca:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            reason = f"the client CA {tls.client_ca} cannot be used: {_of_tls(error)}"
            raise ListenError(reason) from None
        context.verify_mode = ssl.CERT_REQUIRED if tls.required else ssl.CERT_OPTIONAL
    return context


class _LockedKeyError(Exception):
    """The key's file asks for a passphrase."""


def _nobody_to_ask() -> str:
    """Without this OpenSSL would wait for somebody to type a passphrase."""
    raise _LockedKeyError


def _readable(path: str) -> None:
    """OpenSSL does not say which of its files it could not read."""
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ListenError(f"{path}: cannot be read: {reason}") from None


def _of_tls(error: OSError) -> str:
    """OpenSSL's reason without the places in its source."""
    reason = re.sub(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$", "", error.strerror or str(error)).lower()
    return "it is not what a file in PEM should hold" if reason == "pem lib" else reason


def files_allowed(wanted: int) -> int:
    """Have the system allow this process so many open files, if it will; how many it allows.

    Systems begin with few, and a connection beyond them waits in vain without anybody hearing.
    """
    try:
        import resource
    except ImportError:  # no such limit here
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        with contextlib.suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return allowed
    return soft


def common_name(certificate: object) -> str | None:
    """The common name of a client certificate as `getpeercert` tells it, if it has one."""
    if isinstance(certificate, dict):
        for part in certificate.get("subject", ()):
            for key, value in part:
                if key == "commonName" and value:
                    return str(value)
    return None


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
