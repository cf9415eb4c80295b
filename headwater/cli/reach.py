"""Which running broker a command talks to, and as whom.

Owns the options for that, the meaning of a broker's address and the asking for a password. Must not
know what is said to the broker. Invariant: a password never stands in the argument list.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headwater.cli.output import CommandError, ask_password

if TYPE_CHECKING:
    from headwater.cli.network.contexts import NamedNetwork

DEFAULT_BROKER = "http://127.0.0.1:8080"
PORTS = {"http": 8080, "https": 443, "mqtt": 1883, "mqtts": 8883}
DEFAULT_CLIENT = "cli"
EXIT_UNREACHABLE = 3
NOT_IN_TIME = "accepted, but not active everywhere in time"
ENVIRONMENT = (
    "HEADWATER_BROKER names the broker where --broker and --context do not, else the\n"
    "selected context does; HEADWATER_PASSWORD holds the password of --user where nobody\n"
    "can be asked; HEADWATER_TOKEN holds a program's token, for http:// and https://\n"
    "where --user is not given."
)


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker's address and who calls. `path` is the prefix of its topics or of its pages.

    `remedy` is what to do where it does not answer.
    """

    scheme: str
    host: str
    port: int
    path: str
    user: str | None
    password: str | None
    client: str
    timeout_s: float
    token: str | None = field(default=None, repr=False)
    remedy: str = "is it running? `headwater broker` starts one, --broker names another"

    @property
    def is_mqtt(self) -> bool:
        """Tell whether the broker is reached by MQTT."""
        return self.scheme in {"mqtt", "mqtts"}

    @property
    def encrypted(self) -> bool:
        """Tell whether the connection uses TLS."""
        return self.scheme in {"https", "mqtts"}

    @property
    def url(self) -> str:
        """The address, without any secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path and '/' + self.path}"

    def unreachable(self, reason: str) -> CommandError:
        """The error for a broker that does not answer."""
        return CommandError(EXIT_UNREACHABLE, f"cannot reach {self.url}: {reason}; {self.remedy}")


def tls_reason(error: BaseException | None) -> str | None:
    """Why TLS failed, where that is what is behind the error."""
    import ssl

    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message or "it cannot be checked"
            return f"its certificate is not trusted: {why}; SSL_CERT_FILE names what is trusted"
        if isinstance(error, ssl.SSLError):
            return "what answers there does not speak TLS"
        error = error.__cause__ or error.__context__
    return None


def add_options(parser: argparse.ArgumentParser, *, client: bool = True) -> None:
    """The options of every command that talks to a broker; without `client` there is no `--as`."""
    parser.add_argument(
        "--broker",
        "--url",
        dest="broker",
        metavar="URL",
        help=f"http://, https://, mqtt:// or mqtts:// (default {DEFAULT_BROKER})",
    )
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="a network of `headwater context ls`, in place of a URL",
    )
    parser.add_argument("--user", metavar="NAME", help="the user, where the broker has users")
    if client:
        parser.add_argument(
            "--as",
            dest="client",
            metavar="CLIENT",
            help=f"the client's name (default: the user, else {DEFAULT_CLIENT})",
        )
    else:
        parser.set_defaults(client=None)
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long to wait for an answer (default 10)",
    )
    parser.epilog = f"{parser.epilog or ''}\n\n{ENVIRONMENT}"


def broker_of(arguments: argparse.Namespace) -> BrokerAddress:
    """The broker that the options name; of a context the first one. Raises CommandError."""
    return brokers_of(arguments)[0]


def brokers_of(arguments: argparse.Namespace) -> list[BrokerAddress]:
    """Return all brokers of the context that is used, or the one that is named by its address.

    Raises CommandError.
    """
    options = {
        "--broker": arguments.broker,
        "--user": arguments.user,
        "--as": arguments.client,
        "--context": arguments.context,
    }
    for option, text in options.items():
        if text and not _is_text(text):
            raise CommandError(2, f"{option}: found bytes that are no text in UTF-8")
    context = _context_of(arguments)
    addresses: tuple[str, ...]
    if context is None:
        addresses = (arguments.broker or os.environ.get("HEADWATER_BROKER") or DEFAULT_BROKER,)
    else:
        addresses = context.brokers
    user = arguments.user or (context.user if context is not None else None)
    words = list(options)[:3]
    brokers = [
        broker_at(address, user, arguments.client, arguments.timeout, words)
        for address in addresses
    ]
    token = os.environ.get("HEADWATER_TOKEN") or (context.token() if context is not None else None)
    if user is not None and (arguments.user or token is None):
        password = _password(user)
        return [replace(broker, password=password) for broker in brokers]
    return [replace(broker, user=None, token=token) for broker in brokers]


def _context_of(arguments: argparse.Namespace) -> "NamedNetwork | None":
    """Return the context that is named, or selected where no broker is named in any other way."""
    if arguments.broker or (not arguments.context and os.environ.get("HEADWATER_BROKER")):
        return None
    from headwater.cli.network.contexts import load

    contexts = load()
    name = arguments.context or contexts.selected
    return contexts.get(name) if name else None


def broker_at(
    address: str,
    user: str | None,
    client: str | None,
    timeout_s: float,
    words: Sequence[str] = ("address", "user", "name"),
) -> BrokerAddress:
    """The broker at an address, without a password; `words` are what a caller calls the first
    three. Raises CommandError.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise CommandError(2, f"{words[0]} {address}: {error}".lower()) from None
    if parts.scheme not in PORTS or not parts.hostname:
        expected = ", ".join(scheme + "://" for scheme in PORTS)
        raise CommandError(2, f"{words[0]} {address}: expected {expected}…")
    if parts.username or parts.password:
        raise CommandError(2, f"{words[0]}: no password belongs into an address; use {words[1]}")
    client = client or user or DEFAULT_CLIENT
    if not re.fullmatch(r"[^/+#\x00]{1,64}", client):
        raise CommandError(
            2, f"{words[2]} {client}: expected 1 to 64 characters without /, + and #"
        )
    return BrokerAddress(
        scheme=parts.scheme,
        host=parts.hostname,
        port=PORTS[parts.scheme] if port is None else port,
        path=parts.path.strip("/"),
        user=user,
        password=None,
        client=client,
        timeout_s=timeout_s,
    )


def _is_text(text: str) -> bool:
    """Tell whether it is more than what Python makes of bytes that it cannot read."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _password(user: str) -> str:
    password = os.environ.get("HEADWATER_PASSWORD")
    if password is not None:
        return password
    if not sys.stdin.isatty():
        raise CommandError(2, "no terminal to ask for the password; set HEADWATER_PASSWORD")
    return ask_password(f"password of {user}: ")


def _seconds(text: str) -> float:
    expected = "more than 0 and at most 86400 seconds"
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected {expected}") from None
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected {expected}")
    return value
