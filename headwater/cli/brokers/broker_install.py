"""`headwater broker install`: a broker as a service of this machine, started with it.

Owns the command's options and output. Must not know what the steps are. Invariant: `--dry-run`
changes nothing; without it all steps are done, or the first that fails is told.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.cli.output import CommandError, print_json
from headwater.installing.install_root import InstallError, InstallRoot
from headwater.installing.steps import CONFIG, InstallStep, ServiceWish, installation

EXAMPLE = "  headwater broker install --name pi3 --dry-run   # without --dry-run as root"
HOMES = ("/home/", "/root/", "/run/user/")
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # of brokers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--name", default="", help="the broker's name (default: its host's)")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what installing and uninstalling have in common."""
    parser.add_argument(
        "--root", default="/", metavar="DIR", help="the root of another system, being prepared"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """Install; 1 where a step fails, 2 where it may not be done."""
    if arguments.name and not re.fullmatch(NAME_PATTERN, arguments.name):
        raise CommandError(2, f"`{arguments.name}` is no name of a broker, as pi3 or roof-2 are")
    machine = machine_of(arguments)
    program = _program()
    if program.startswith(HOMES):
        raise CommandError(2, f"the service cannot read {program}, as homes are closed to it;"
                           " install Headwater elsewhere, as in /opt (docs/pi.md)")  # fmt: skip
    carry_out(arguments, installation(machine, ServiceWish(program, arguments.name)))
    if not arguments.json and not arguments.dry_run:
        if machine.has_systemd():
            print("it runs; `systemctl status headwater` and `headwater health` say how it is")
        else:
            print(f"no systemd runs here; start it with: headwater broker --config {CONFIG}")
    return 0


def machine_of(arguments: argparse.Namespace) -> InstallRoot:
    """Return the machine that is meant. Raises CommandError where it may not be changed."""
    root = Path(arguments.root)
    if not root.is_dir():
        raise CommandError(2, f"{root} is no folder; --root names that of a whole system")
    if os.geteuid() != 0 and not arguments.dry_run:
        raise CommandError(2, "only root may do this; --dry-run says what would be done")
    return InstallRoot(root.resolve())


def carry_out(arguments: argparse.Namespace, steps: Sequence[InstallStep]) -> None:
    """Do the steps that are not done, or say what they are. Raises CommandError."""
    done = []
    for step in steps:
        try:
            is_done = step.is_done()
            if not arguments.dry_run and not is_done:
                step.do()
        except InstallError as error:
            raise CommandError(1, f"{step.sentence}: {error}") from None
        done.append({"step": step.sentence, "done": is_done})
        if not arguments.json:
            print(f"{'as it is' if is_done else 'to do' if arguments.dry_run else 'done':8}  "
                  f"{step.sentence}")  # fmt: skip
    if arguments.json:
        print_json({"ok": True, "dry_run": arguments.dry_run, "steps": done})


def _program() -> str:
    """Return the command that runs a broker as whoever typed this runs Headwater."""
    program = Path(sys.argv[0])
    if program.name == "headwater" and program.is_file():
        return str(program.absolute())
    return f"{sys.executable} -m headwater"
