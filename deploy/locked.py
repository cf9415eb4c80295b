"""The packages of uv.lock that a machine takes, and which of them have a wheel for it.

Owns the machines, the tags of wheels that each takes, and the choice. Must not know how packages
are fetched or built. Invariant: versions and hashes are those of uv.lock.
"""

import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".venv" / "tools" / "bin" / "uv"
PYTHON = "3.11"
MACHINES = {
    "x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "aarch64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "i686": ("manylinux_2_28_i686", "manylinux_2_17_i686", "manylinux2014_i686"),
    "armv7l": ("manylinux_2_31_armv7l", "manylinux_2_17_armv7l", "manylinux2014_armv7l"),
}
# How dpkg calls them.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "i386", "armv7l": "armhf"}


class LockedPackage(NamedTuple):
    """A package at its locked version.

    `line` is its requirement with hashes as pip reads it. `has_wheel`: one that the machine takes
    is locked. `source_hash` is the sdist's, as `sha256:…`; empty: there is none.
    """

    name: str
    version: str
    line: str
    has_wheel: bool
    source_hash: str


def tags_of(machine: str) -> frozenset[Tag]:
    """Return the tags of the wheels that Python 3.11 takes on `machine`."""
    version = tuple(int(number) for number in PYTHON.split("."))
    platforms = MACHINES[machine]
    return frozenset(cpython_tags(version, platforms=platforms)) | frozenset(
        compatible_tags(version, interpreter=f"cp{version[0]}{version[1]}", platforms=platforms)
    )


def locked_packages(machine: str, *options: str) -> list[LockedPackage]:
    """Return what `uv export` lists with `options` and `machine` asks for, in order of names.

    pip judges a requirement's condition by the machine on which it runs itself, so conditions are
    judged here and left out of the lines.
    """
    words = [str(UV), "export", "--frozen", "--no-emit-project", "-q", "--no-annotate", *options]
    exported = subprocess.run(  # noqa: S603  # the words are those above
        [*words, "--directory", str(ROOT)], capture_output=True, text=True, check=True
    ).stdout
    with (ROOT / "uv.lock").open("rb") as file:
        locked = {
            (entry["name"], entry["version"]): entry for entry in tomllib.load(file)["package"]
        }
    tags = tags_of(machine)
    packages = []
    for line in exported.replace("\\\n", " ").splitlines():
        condition, *hashes = line.partition("#")[0].split("--hash=")
        if not condition.strip():
            continue
        requirement = Requirement(condition)
        if requirement.marker is None or requirement.marker.evaluate(_environment(machine)):
            version = str(requirement.specifier).removeprefix("==")
            entry = locked[requirement.name, version]
            kept = " ".join(f"--hash={digest.strip()}" for digest in hashes)
            packages.append(
                LockedPackage(
                    requirement.name, version, f"{requirement.name}=={version} {kept}",
                    has_wheel=any(
                        parse_wheel_filename(wheel["url"].rpartition("/")[2])[3] & tags
                        for wheel in entry.get("wheels", ())
                    ),
                    source_hash=entry.get("sdist", {}).get("hash", ""),
                )
            )  # fmt: skip
    return packages


def _environment(machine: str) -> dict[str, str]:
    """Return what conditions are judged by on a Linux `machine` with Debian's Python."""
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{PYTHON}.2",
        "python_version": PYTHON,
        "sys_platform": "linux",
    }
