"""What secures links: the shared secret from its file, and the TLS contexts of both roles.

Owns the reading of these files and the sentences where they are no good. Must not know sockets.
Invariant: no secret is in a text that this module makes.
"""

import ssl
import stat
from pathlib import Path

from msgspec import Struct

from broker.config.links import LinksSection
from broker.mqtt.listening import ListenError, Tls, common_name, tls_context

SECRET_CHARS_MIN = 16  # a stranger who has overheard one greeting may guess as long as he likes
SECRET_BYTES_MAX = 1_024


class LinkConfigError(Exception):
    """Links cannot be made as they are configured; the text is a sentence for a person."""


class Security(Struct, frozen=True):
    """What both roles need; contexts are SSLContext or None. `remark` is worth a warning, if any.

    The secret is bytes so that it never ends up in a text by mistake.
    """

    secret: bytes = b""
    listening: ssl.SSLContext | None = None
    dialling: ssl.SSLContext | None = None
    remark: str = ""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Security(secret={'set' if self.secret else 'none'})"


def load_security(settings: LinksSection) -> Security:
    """Read all files that the settings name. Raises LinkConfigError."""
    secret, remark = _secret(settings.secret_file) if settings.secret_file else (b"", "")
    listening = dialling = None
    if settings.tls_cert:
        required = settings.tls_client_certificates == "required"
        tls = Tls(settings.tls_cert, settings.tls_key, settings.tls_ca, required)
        try:
            listening = tls_context(tls)
        except ListenError as error:
            raise LinkConfigError(f"links: {error}") from None
    if settings.tls_ca:
        dialling = _dialling(settings)
    return Security(secret, listening, dialling, remark)


def _secret(path: str) -> tuple[bytes, str]:
    try:
        with Path(path).open("rb") as file:
            data = file.read(SECRET_BYTES_MAX + 1)
            mode = Path(path).stat().st_mode
        line = data.decode().split("\n", 1)[0].strip()
    except UnicodeDecodeError:
        raise LinkConfigError(f"links.secret_file: {path} is not UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LinkConfigError(f"links.secret_file: {path} cannot be read: {reason}") from None
    if len(data) > SECRET_BYTES_MAX or len(line) < SECRET_CHARS_MIN:
        raise LinkConfigError(
            f"links.secret_file: the first line of {path} has to be a secret of "
            f"{SECRET_CHARS_MIN} characters or more, in a file of up to {SECRET_BYTES_MAX} bytes"
        )
    remark = ""
    if mode & stat.S_IROTH:
        remark = f"every user of this machine can read {path}; `chmod 600` it"
    return line.encode(), remark


def _dialling(settings: LinksSection) -> ssl.SSLContext:
    """For connections to peers: certificates are checked against the CA and the broker's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Brokers are known by name, not by where they are; the handshake compares it, see `named`.
    context.check_hostname = False
    try:
        context.load_verify_locations(settings.tls_ca)
        if settings.tls_cert:
            context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_nobody)
    except (OSError, ssl.SSLError, ValueError):
        raise LinkConfigError(
            f"links: {settings.tls_ca} is no authority in PEM that can be used"
        ) from None
    return context


def _nobody() -> str:
    """OpenSSL would wait for somebody to type a passphrase; a locked key fails before."""
    return ""


def named(certificate: object) -> str:
    """To whom the other end's certificate is made out; "" where it brought none.

    Raises LinkConfigError where it names nobody.
    """
    if not certificate:
        return ""
    name = common_name(certificate)
    if not name:
        raise LinkConfigError("its certificate names no broker (common name)")
    return name
