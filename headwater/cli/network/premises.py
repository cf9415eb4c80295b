"""What a broker's configuration needs of this machine, before the broker is started.

Owns the questions about files, directories, ports and multicast. Must not start anything, and
leaves nothing behind. Invariant: a configuration with which a broker starts has no finding of level
`error`.
"""

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.network.findings import DISK_SHARE_MIN, UNDISCOVERED, Finding, mend_of

if TYPE_CHECKING:
    from broker.config import Config


def premises(file: str) -> list[Finding]:
    """Return what is wrong with the configuration `file` and with what it names."""
    from broker.config import ConfigError, load

    try:
        config = load(file, os.environ, {}).config
    except ConfigError as error:
        return [
            Finding("error", file, problem, "correct it; `headwater config show` checks it again")
            for problem in error.problems
        ]
    checks = (_secrets(file, config), _folder(config), _ports(config), _discovery(config))
    return [row for rows in checks for row in rows]


def _secrets(file: str, config: "Config") -> list[Finding]:
    from broker.config import ConfigError
    from broker.links.securing import LinkConfigError, load_security
    from broker.site.reload import read_table

    rows = []
    mend = "correct the file, or name another one"
    try:
        read_table(config)
    except ConfigError as error:
        rows += [Finding("error", file, problem, mend) for problem in error.problems]
    if config.links.linked:
        try:
            load_security(config.links)
        except LinkConfigError as error:
            rows.append(Finding("error", file, str(error), mend))
    return rows


def _folder(config: "Config") -> list[Finding]:
    if not config.broker.data_dir:
        return []
    path = Path(config.broker.data_dir)
    path = path.parent if path.name == "*" else path
    nearest = next(place for place in (path, *path.parents) if place.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        sentence = f"the data directory {path} cannot be written"
        return [Finding("error", config.broker.name, sentence, f"`sudo chown $USER {nearest}`")]
    disk = shutil.disk_usage(nearest)
    if disk.free < DISK_SHARE_MIN * disk.total:
        sentence = f"the disk of {path} has {disk.free >> 20} of {disk.total >> 20} MB left"
        return [Finding("warning", config.broker.name, sentence, "make room there")]
    return []


def _discovery(config: "Config") -> list[Finding]:
    if not config.links.discover:
        return []
    from broker.links.discovery import SegmentError, segment
    from broker.links.securing import LinkConfigError

    name = config.broker.name
    try:
        multicast = segment()
        multicast.usable(multicast.interfaces())
    except LinkConfigError as error:
        return [Finding("error", name, str(error), "`pip install 'headwater[discovery]'`")]
    except SegmentError as error:
        reason = str(error)
        return [Finding("warning", name, f"{UNDISCOVERED}: {reason}", mend_of(reason))]
    return []


def _ports(config: "Config") -> list[Finding]:
    """Try to listen where the broker would; a port that its own process has is taken as well."""
    wanted = {"mqtt": (config.mqtt.host, config.mqtt.port if config.mqtt.plain else 0)}
    if config.http.enabled:
        wanted["http"] = (config.http.host, config.http.port)
    if config.links.host:
        wanted["links"] = (config.links.host, config.links.port)
    rows = []
    for section, (host, port) in wanted.items():
        if port and (reason := _taken(host, port)):
            sentence = f"{section} cannot listen on {host}:{port}: {reason}"
            mend = f"end what listens there (the broker itself?), or set {section}.port"
            rows.append(Finding("warning", config.broker.name, sentence, mend))
    return rows


def _taken(host: str, port: int) -> str:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return ""
