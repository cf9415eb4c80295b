"""The steps by which a broker becomes a service of a machine, and ceases to be one.

Owns the steps and their order. Must not know how a machine does them. Invariant: each step says if
it is done already; a configuration that is there is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from headwater.installing.install_root import InstallRoot
from headwater.installing.unit import unit_text

CONFIG_DIR = PurePosixPath("/etc/headwater")
CONFIG = CONFIG_DIR / "broker.toml"
DATA = PurePosixPath("/var/lib/headwater")
UNIT = PurePosixPath("/etc/systemd/system/headwater.service")
SERVICE = "headwater"
USER = "headwater"
PRIVATE = 0o750  # of folders: their user, and whoever is of its group
CONFIG_MODE = 0o640
UNIT_MODE = 0o644
CONFIG_TEXT = """\
# The broker of this machine; `headwater config show` prints all settings, docs/configuration.md
# explains them. `systemctl restart headwater` takes up what is changed here.

[broker]
name = "{name}"  # "": that of the host, at the first start
data_dir = "{data}/broker"
"""


class ServiceWish(NamedTuple):
    """A broker to be installed: the command that runs it, and its name ("": its host's)."""

    program: str
    name: str = ""


@dataclass(frozen=True)
class InstallStep:
    """A step in words, if it is done already, and the doing."""

    sentence: str
    is_done: Callable[[], bool]
    do: Callable[[], None]


def installation(machine: InstallRoot, wish: ServiceWish) -> list[InstallStep]:
    """Return the steps that install a broker, those that are done included."""
    text = CONFIG_TEXT.format(name=wish.name, data=DATA)
    unit = unit_text(wish.program, CONFIG, DATA, USER)
    steps = [
        InstallStep(
            f"make the user {USER}, who owns the data and may log in nowhere",
            lambda: machine.ids_of(USER) is not None,
            lambda: machine.run(
                "useradd", *machine.useradd_words(), "--system", "--user-group",
                "--home-dir", str(DATA), "--shell", "/usr/sbin/nologin", USER,
            ),
        ),
        _folder(machine, DATA, f"{USER}:{USER}"),
        _folder(machine, CONFIG_DIR, f"root:{USER}"),
        InstallStep(
            f"write the configuration to {CONFIG}",
            lambda: machine.text(CONFIG) is not None,
            lambda: machine.write(CONFIG, text, CONFIG_MODE, f"root:{USER}"),
        ),
        InstallStep(
            f"write systemd's unit to {UNIT}",
            lambda: machine.text(UNIT) == unit,
            lambda: machine.write(UNIT, unit, UNIT_MODE, "root:root"),
        ),
    ]  # fmt: skip
    if machine.has_systemd():
        steps += [
            _always(machine, "have systemd read its units again", "systemctl", "daemon-reload"),
            _always(machine, "start it with the machine", "systemctl", "enable", SERVICE),
            _always(machine, "start it now", "systemctl", "start", SERVICE)
            if machine.text(UNIT) == unit
            else _always(machine, "begin it anew", "systemctl", "restart", SERVICE),
        ]
    return steps


def removal(machine: InstallRoot, *, purge: bool) -> list[InstallStep]:
    """Return the steps that take the service away; with `purge` its data and user, too."""
    steps = []
    if machine.has_systemd() and machine.text(UNIT) is not None:
        sentence = "end it, now and with the machine"
        steps.append(_always(machine, sentence, "systemctl", "disable", "--now", SERVICE))
    steps.append(_without(machine, UNIT, "systemd's unit"))
    if machine.has_systemd():
        sentence = "have systemd read its units again"
        steps.append(_always(machine, sentence, "systemctl", "daemon-reload"))
    if purge:
        steps += [
            _without(machine, CONFIG_DIR, "the configuration and secrets"),
            _without(machine, DATA, "all data, the journal and results that nobody has fetched"),
            InstallStep(
                f"remove the user {USER}",
                lambda: machine.ids_of(USER) is None,
                lambda: machine.run("userdel", *machine.useradd_words(), USER),
            ),
        ]
    return steps


def _folder(machine: InstallRoot, path: PurePosixPath, owner: str) -> InstallStep:
    def is_done() -> bool:
        place = machine.at(path)
        ids = machine.ids_of(owner.partition(":")[0])
        if not place.is_dir() or ids is None:
            return False
        status = place.stat()
        return status.st_uid == ids[0] and status.st_mode & 0o7777 == PRIVATE

    return InstallStep(
        f"make {path}, of {owner}", is_done, lambda: machine.make(path, PRIVATE, owner)
    )


def _without(machine: InstallRoot, path: PurePosixPath, content: str) -> InstallStep:
    place = machine.at(path)
    sentence = f"remove {path}: {content}"
    return InstallStep(sentence, lambda: not place.exists(), lambda: machine.remove(path))


def _always(machine: InstallRoot, purpose: str, *words: str) -> InstallStep:
    sentence = f"{purpose}: {' '.join(words)}"
    return InstallStep(sentence, lambda: False, lambda: machine.run(*words))
