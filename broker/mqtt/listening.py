"""Where the MQTT face listens, and where it refuses to.

Owns the listeners' settings, their check and the TLS contexts. Must not know MQTT. Invariant: no
socket beyond loopback is opened without users or client certificates.
"""

import ipaddress
import ssl
from collections.abc import Sequence

from msgspec import Struct


class ListenError(Exception):
    """A listener cannot or must not be opened; its text is a sentence for a person."""


class Tls(Struct, frozen=True):
    """Files in PEM: the certificate chain, its key, and whose client certificates are demanded."""

    certificate: str
    key: str
    client_ca: str = ""


class Listener(Struct, frozen=True):
    """One address; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: Tls | None = None


def check_listeners(listeners: Sequence[Listener], *, users: bool) -> None:
    """Raise `ListenError` where strangers could come in."""
    for listener in listeners:
        demands = listener.tls is not None and listener.tls.client_ca
        if not users and not demands and not _loopback(listener.host):
            raise ListenError(
                f'"{listener.host}" can be reached from other machines, and neither users nor a '
                'client CA are configured; configure one of them or listen on "127.0.0.1"'
            )


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The server's context, TLS 1.2 or newer; `ListenError` where a file is no good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ListenError(
            f"the certificate {tls.certificate} with the key {tls.key} cannot be used: {error}"
        ) from None
    if tls.client_ca:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ListenError(f"the client CA {tls.client_ca} cannot be used: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


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
