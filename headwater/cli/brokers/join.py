"""`headwater join`: set up a new broker of a network, by a code of one of its brokers.

Owns the command's options and output, and the asking. Must not know what a configuration means.
Invariant: status 0 means that the folder is there with all that the broker needs, and any other
that nothing was made.
"""

import argparse
import re
import socket
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.admission.code import CODE_CHARS_MAX, CodeError, InviteCode, read
from broker.rights.names import NAME_PATTERN, NAME_SAYS
from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.plan import seconds
from headwater.cli.reach import broker_at

if TYPE_CHECKING:
    from broker.admission.messages import Admission

EXAMPLE = "  headwater join - --name pi3 --dir pi3   # the code on standard input, or in place of -"
NO_ZEROCONF = (
    "warning: links.discover is set, as at the broker that invited, and the package zeroconf is "
    "missing here: `pip install 'headwater[discovery]'` before the broker starts"
)
LOOPBACK_ALONE = (
    "warning: links.discover is not set, though it is at {}: this broker's links listen on this "
    "machine alone; join at an address that other machines reach (--address) to have it"
)
NOT_THEIRS = "what answers at {} is not the broker that made this code: nothing was made"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("code", metavar="CODE", help="what `headwater invite` has printed; - reads")
    parser.add_argument("--name", help="the new broker's name (default: that of this machine)")
    parser.add_argument("--dir", metavar="DIR", help="a new folder (default: called as the broker)")
    parser.add_argument(
        "--address", metavar="URL", help="where the broker that invites is reached from here"
    )
    parser.add_argument(
        "--timeout", type=seconds, default=10.0, metavar="SECONDS", help="(default 10)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Join; 2 where the code is none or the folder in use, 1 where the broker refuses."""
    from broker.admission import folder as folders
    from broker.admission.authority import new_key
    from broker.admission.seal import PackageMissingError, needed

    text = sys.stdin.readline(CODE_CHARS_MAX) if arguments.code == "-" else arguments.code
    try:
        code = read(text)
        needed()
    except (CodeError, PackageMissingError) as error:
        raise CommandError(2, str(error)) from None
    name = arguments.name or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")
    if not re.fullmatch(NAME_PATTERN, name):
        raise CommandError(2, f"--name: a broker's name is {NAME_SAYS}")
    folder = Path(arguments.dir or name).absolute()
    key, public = new_key()
    try:
        with folders.drafted(folder) as draft:
            grant, asked = _asked(code, arguments, name, public)
            ports = folders.fill(draft, name, key, grant, asked)
    except folders.FolderError as error:
        raise CommandError(2, str(error)) from None
    configuration = str(folder / folders.CONFIGURATION)
    _warn_of_discovery(grant, folder / folders.CONFIGURATION)
    if arguments.json:
        made: dict[str, Any] = {"ok": True, "name": name, "config": configuration, "ports": ports}
        print_json(made | {"peer": grant.broker})
    else:
        print(f"{name} is set up in {folder}, and links itself to {grant.broker}; start it with")
        print(f"headwater broker --config {configuration}")
    return 0


def _warn_of_discovery(grant: "Admission", configuration: Path) -> None:
    """Say what keeps the new broker from finding others as the one that invited it does."""
    if not grant.discover:
        return
    links = tomllib.loads(configuration.read_text(encoding="utf-8"))["links"]
    if "discover" not in links:
        print(LOOPBACK_ALONE.format(grant.broker), file=sys.stderr)
    elif find_spec("zeroconf") is None:
        print(NO_ZEROCONF, file=sys.stderr)


def _asked(
    code: InviteCode, arguments: argparse.Namespace, name: str, public: bytes
) -> "tuple[Admission, str]":
    """Return what the broker that made the code grants, and the host where it was asked."""
    import msgspec

    from broker.admission.messages import Admission, Enquiry, JoinRequest, SealedAdmission
    from broker.admission.seal import SealedRequest, SealError

    address = arguments.address or code.address
    words = ("--address" if arguments.address else "the code's address", "", "")
    broker = broker_at(address, None, None, arguments.timeout, words)
    if broker.is_mqtt:
        raise CommandError(2, "--address: join asks over HTTP; name the broker's http:// address")
    asking = SealedRequest(code.secret, code.id)
    plain = msgspec.msgpack.encode(JoinRequest(name, public, asking.public))
    enquiry = Enquiry(code.id.hex(), asking.seal(plain))
    body = msgspec.json.encode(enquiry).decode()
    status, answer = http_client.ask(broker, "POST", "/v1/joins", body)
    if status != 200:
        raise http_client.refused(answer)
    try:
        sealed = msgspec.convert(answer, SealedAdmission).sealed
        return msgspec.msgpack.decode(asking.open(sealed), type=Admission), broker.host
    except (msgspec.DecodeError, SealError):
        raise CommandError(1, NOT_THEIRS.format(broker.url)) from None
