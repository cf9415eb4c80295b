"""Builds a Debian package of a broker, with all of Python's packages that it needs.

    python deploy/deb.py arm64 dist

Owns the package's files and scripts. Must not know how a broker becomes a service: its scripts
leave that to `headwater broker install`. Invariant: nothing is fetched or compiled where the
package is installed; what is removed and installed again goes on with its data.
"""

import argparse
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from debian_roots import report, run_tool
from locked import ARCHITECTURES, ROOT
from wheels import extras_of, wheels

MACHINES = {architecture: machine for machine, architecture in ARCHITECTURES.items()}
# Wheels of PyPI bring their libraries; those that are built in a root take Debian's.
LIBRARIES = {"armhf": ", libffi8"}
PACKAGES = "usr/lib/headwater"
LAUNCHER = """\
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/usr/lib/headwater")
from headwater.cli import main

sys.exit(main())
"""
CONTROL = """\
Package: headwater
Version: {version}
Architecture: {architecture}
Section: net
Priority: optional
Depends: python3 (>= 3.11), python3 (<< 3.12), passwd{libraries}
Installed-Size: {size_kb}
Maintainer: Headwater <headwater@localhost>
Description: complex events, detected close to their sensors
 A broker that takes events over MQTT and HTTP, detects combinations of them that people describe
 in a small language, and shares the work with other brokers of its network.
{remark}"""
REMARK = """\
 .
 This package does without cryptography and zeroconf, of which there are none for {architecture}:
 it has no `headwater invite`, no `headwater join` and no `links.discover`, so such a broker is
 linked by its configuration.
"""
# dpkg itself would install an older version over a newer one. The text of `data_formats.py` is part
# of the script, as no file of the package is unpacked yet. Where no Python runs it, no broker did.
PREINST = """\
#!/bin/sh
set -e
python3 -c 'import tomllib' 2> /dev/null || exit 0
python3 -I - {known} << 'END OF THE PROGRAM'
{program}END OF THE PROGRAM
"""
# The version that stays, as an older one refused to take its place, goes on.
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] || [ "$1" = abort-upgrade ]; then
    python3 -m compileall -q /usr/lib/headwater || true
    headwater broker install
fi
"""
# The old version ends before its files are replaced: what it had not loaded yet would be the new's.
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ]; then
    headwater broker uninstall
elif [ -d /run/systemd/system ]; then
    systemctl stop headwater || true
fi
find /usr/lib/headwater -name __pycache__ -type d -prune -exec rm -rf {} +
"""
POSTRM = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
    rm -rf /etc/headwater /var/lib/headwater
    if getent passwd headwater > /dev/null; then
        userdel headwater
    fi
fi
"""
SCRIPTS = {"postinst": POSTINST, "prerm": PRERM, "postrm": POSTRM}


def known_formats() -> dict[str, int]:
    """Return the newest formats of data that the broker of this tree knows, by their kinds."""
    from broker.core.recovery.durable import SNAPSHOT_VERSION
    from broker.core.recovery.records import VERSION
    from broker.mqtt.storage.rows import KEPT
    from broker.store import RESULTS

    parts = {part.name: part.version for part in (RESULTS, KEPT)}
    return {"journal": VERSION, "snapshot": SNAPSHOT_VERSION} | parts


def preinst() -> str:
    """Return the script that refuses a package whose broker cannot read the data."""
    known = " ".join(f"{kind}={version}" for kind, version in known_formats().items())
    return PREINST.format(known=known, program=(ROOT / "deploy/data_formats.py").read_text())


def version_of(root: Path = ROOT) -> str:
    """Return the version that pyproject.toml has."""
    with (root / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    return version


def stage(folder: Path, place: Path) -> None:
    """Put what the wheels of a folder hold, and the launcher, under the root `place`."""
    packages = place / PACKAGES
    packages.mkdir(parents=True)
    for wheel in sorted(folder.glob("*.whl")):
        shutil.unpack_archive(wheel, packages, "zip")
    for scripts in packages.glob("*.data"):
        shutil.rmtree(scripts)
    launcher = place / "usr/bin/headwater"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER)
    notice = place / "usr/share/doc/headwater/copyright"
    notice.parent.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", notice)


def control_text(architecture: str, version: str, size_kb: int) -> str:
    """Return what dpkg is to know of the package."""
    remark = "" if extras_of(MACHINES[architecture]) else REMARK.format(architecture=architecture)
    return CONTROL.format(
        version=version, architecture=architecture, size_kb=size_kb,
        libraries=LIBRARIES.get(architecture, ""), remark=remark,
    )  # fmt: skip


def build(architecture: str, folder: Path, version: str, packed: Path | None = None) -> Path:
    """Return the package, built in `folder`; `packed` are wheels that are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        if packed is None:
            packed = Path(name) / "wheels"
            wheels(MACHINES[architecture], packed)
        place = Path(name) / "root"
        stage(packed, place)
        size_kb = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) // 1024
        control = place / "DEBIAN"
        control.mkdir()
        (control / "control").write_text(control_text(architecture, version, size_kb))
        for script, text in (SCRIPTS | {"preinst": preinst()}).items():
            (control / script).write_text(text)
        for file in place.rglob("*"):
            runs = file.is_dir() or file.parent == control or file.name == "headwater"
            file.chmod(0o755 if runs else 0o644)
        (control / "control").chmod(0o644)
        package = folder / f"headwater_{version}_{architecture}.deb"
        report(f"packing {package}")
        run_tool(
            "dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", str(place), str(package)
        )
    return package


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("architecture", choices=sorted(MACHINES), help="as dpkg names it")
    parser.add_argument("folder", type=Path, help="where the package goes")
    sys.path.insert(0, str(ROOT))  # the broker of this tree, whatever else is installed
    said = parser.parse_args()
    package = build(said.architecture, said.folder, version_of())
    sys.stdout.write(f"{package}: {package.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
