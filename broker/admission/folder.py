"""The folder of a broker that has joined: its configuration, secrets and certificates.

Owns the files and the choice of ports. Must not know how they were got. Invariant: the folder is
there whole or not at all, and nobody but its owner can read what is in it.
"""

import json
import os
import shutil
import socket
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broker.admission.messages import Admission
from broker.config import is_loopback

CONFIGURATION = "broker.toml"
SECRET, CERTIFICATE, KEY = "links.secret", "link.pem", "link.key"
AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority.key"
PORTS = {"mqtt": 1883, "http": 8080, "links": 1889}
PORTS_TRIED = 200
EVERYWHERE = "0.0.0.0"  # noqa: S104  # links are secured by what is granted
LOOPBACK = "127.0.0.1"


class FolderError(Exception):
    """The folder cannot be made; the text is a sentence for a person."""


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """Give a new folder beside `folder`, which takes its place at the end of a block that is left
    without an error, and is removed after any other. Raises FolderError.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FolderError(f"{folder} is in use; name a new folder with --dir")
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))  # mode 0700
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield draft
        draft.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        raise _unwritable(folder, error) from None
    finally:
        if draft.exists():
            shutil.rmtree(draft, ignore_errors=True)


def fill(draft: Path, name: str, key: bytes, grant: Admission, asked: str) -> dict[str, int]:
    """Write the files of the broker `name`; the ports that it will listen on.

    `key` is its private key, `asked` the host at which the broker that invited was reached.
    """
    files: dict[str, bytes] = {}
    if grant.secrets:
        files[SECRET] = "".join(f"{secret}\n" for secret in grant.secrets).encode()
    if grant.certificates is not None:
        files |= {CERTIFICATE: grant.certificates.own, KEY: key}
        files[AUTHORITY] = grant.certificates.authority
        if grant.certificates.authority_key:
            files[AUTHORITY_KEY] = grant.certificates.authority_key
    where = grant.host or asked
    host = LOOPBACK if is_loopback(where) else EVERYWHERE
    hosts = {"mqtt": LOOPBACK, "http": LOOPBACK, "links": host}
    taken = _ports_beside(draft)
    ports = {face: _free(hosts[face], port, taken) for face, port in PORTS.items()}
    address = f"[{where}]:{grant.port}" if ":" in where else f"{where}:{grant.port}"
    text = _configuration(name, grant, address, host, ports)
    files[CONFIGURATION] = text.encode()
    for file, data in files.items():
        _write(draft / file, data)
    _sync(draft)
    return ports


def _configuration(
    name: str, grant: Admission, address: str, host: str, ports: dict[str, int]
) -> str:
    links: dict[str, str | int | bool] = {"host": host, "port": ports["links"]}
    if grant.seeds:
        links["seeds"] = grant.seeds
    if grant.discover and not is_loopback(host):  # which the configuration refuses
        links["discover"] = True
    if grant.secrets:
        links["secret_file"] = SECRET
    certificates = grant.certificates
    if certificates is not None:
        links |= {"tls_cert": CERTIFICATE, "tls_key": KEY, "tls_ca": AUTHORITY}
        links["tls_client_certificates"] = certificates.demanded
        if certificates.authority_key:
            links["tls_ca_key"] = AUTHORITY_KEY
    sections: dict[str, Mapping[str, str | int | bool]] = {
        "broker": {"name": name, "data_dir": "data"},
        "mqtt": {"port": ports["mqtt"]},
        "http": {"port": ports["http"]},
        "links": links,
    }
    for section, alike in grant.alike.items():
        sections[section] = {**sections.get(section, {}), **alike}
    sections["links.peers"] = {grant.broker: address}
    lines = [f"# Made by `headwater join`, of an invite by {grant.broker}."]
    for section, values in sections.items():
        lines += ["", f"[{section}]"]
        lines += [f"{_key(key)} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    """Return a key of TOML; names of brokers may hold a dot."""
    return key if key.replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _ports_beside(draft: Path) -> set[int]:
    """Return the ports of the brokers whose folders lie beside `draft`: they may not run yet."""
    ports: set[int] = set()
    for file in draft.parent.glob(f"*/{CONFIGURATION}"):
        try:
            sections = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not for us to mend
            continue
        listed = [section.get("port") for section in sections.values() if isinstance(section, dict)]
        ports.update(port for port in listed if isinstance(port, int))
    return ports


def _free(host: str, first: int, taken: set[int]) -> int:
    """Return the first port from `first` on that is not `taken`, and that nobody listens on."""
    for port in range(first, first + PORTS_TRIED):
        if port in taken:
            continue
        with socket.socket() as probe:
            # As listeners do: a connection that has just ended keeps nobody away.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise FolderError(f"none of {PORTS_TRIED} ports from {first} on is free here")


def _write(path: Path, data: bytes) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(number)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _unwritable(folder: Path, error: OSError) -> FolderError:
    reason = (error.strerror or str(error)).lower()
    return FolderError(f"{folder} cannot be made: {reason}; name another folder with --dir")
