"""What secures links: the shared secret from its file, and the TLS contexts of both roles.

Owns the reading of these files and the sentences where they are no good. Must not know sockets.
Invariant: no secret is in a text that this module makes.
"""

import os
import secrets
import ssl
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from broker.config.links import LinksSection
from broker.mqtt.listeners import ListenError, Tls, common_name, tls_context

SECRET_CHARS_MIN = 16  # a stranger who has overheard one greeting may guess as long as he likes
SECRET_BYTES_MAX = 1_024


class LinkConfigError(Exception):
    """Links cannot be made as they are configured; the text is a sentence for a person."""


class Security(Struct, frozen=True):
    """The secrets and contexts (SSLContext or None) of both roles; `remark` is for a warning.

    `secrets` are all that are valid, the one to prove with first. They are bytes so that none ends
    up in a text by mistake.
    """

    secrets: tuple[bytes, ...] = (b"",)
    listening: ssl.SSLContext | None = None
    dialling: ssl.SSLContext | None = None
    remark: str = ""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Security(secret={'set' if self.secrets[0] else 'none'})"


def load_security(settings: LinksSection) -> Security:
    """Read all files that the settings name. Raises LinkConfigError.

    Where none names a secret and no certificate has to be shown, the secret is that of all brokers
    of this user on this machine, which is made by whoever first needs it.
    """
    certified = settings.tls_ca and settings.tls_client_certificates == "required"
    valid: tuple[bytes, ...] = (b"",)
    remark = ""
    if settings.secret_file:
        valid, remark = _secrets(settings.secret_file)
    elif not certified:
        valid, remark = _secrets(str(own_secret()))
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
    return Security(valid, listening, dialling, remark)


def own_secret(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the file with the secret of this user's brokers on this machine; made if missing.

    It is `headwater/links.secret` in $XDG_STATE_HOME, else in ~/.local/state; only its owner can
    read it. Raises LinkConfigError.
    """
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if not (state or home):
        raise LinkConfigError(
            "links.secret_file: links need a secret, and there is no home directory to keep one "
            "in; name a file, or set XDG_STATE_HOME"
        )
    folder = Path(state or Path(home, ".local", "state"), "headwater")
    path = folder / "links.secret"
    try:
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, draft = tempfile.mkstemp(dir=folder)  # mode 0600
            with os.fdopen(number, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            # Of brokers that start together one makes it, whole, and all read that one.
            with suppress(FileExistsError):
                os.link(draft, path)
            Path(draft).unlink()
        if path.stat().st_mode & 0o077 or path.stat().st_uid != os.getuid():
            why = "others can read it, or it is another user's; remove it, or `chmod 600` it"
            raise LinkConfigError(f"links.secret_file: {path}: {why}")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "name another file, or set XDG_STATE_HOME"
        raise LinkConfigError(f"links.secret_file: {path}: {reason}; {hint}") from None
    return path


def _secrets(path: str) -> tuple[tuple[bytes, ...], str]:
    """Read the secrets of a file, of which the first two lines count, and a remark."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(SECRET_BYTES_MAX + 1)
            mode = Path(path).stat().st_mode
        lines = [line.strip() for line in data.decode().split("\n")[:2]]
    except UnicodeDecodeError:
        raise LinkConfigError(f"links.secret_file: {path} is not UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LinkConfigError(f"links.secret_file: {path} cannot be read: {reason}") from None
    lines = [lines[0], *(line for line in lines[1:] if line)]
    if len(data) > SECRET_BYTES_MAX or any(len(line) < SECRET_CHARS_MIN for line in lines):
        raise LinkConfigError(
            f"links.secret_file: the first line of {path} has to be a secret of "
            f"{SECRET_CHARS_MIN} characters or more, and the second another one or none, in a file "
            f"of up to {SECRET_BYTES_MAX} bytes"
        )
    remark = ""
    if mode & stat.S_IROTH:
        remark = f"every user of this machine can read {path}; `chmod 600` it"
    return tuple(line.encode() for line in lines), remark


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
