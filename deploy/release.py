"""Makes everything that a release consists of, with its checksums.

    python deploy/release.py dist/release

Owns which files those are. Must not know how wheels and packages are built. Invariant: all of it is
of one commit; what this machine cannot build is left out and named; SHA256SUMS is written last, so
that where it stands the release is whole. Dates in the files are that of the commit.
"""

import argparse
import gzip
import io
import json
import os
import re
import shutil
import sys
import tarfile
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from deb import MACHINES, build, version_of
from debian_roots import report, run_tool
from locked import ROOT, UV
from source_wheels import obstacle
from wheels import add_own_wheel, packages_of

DOCKERFILE = "deploy/Dockerfile"
SUMS = "SHA256SUMS"
CONTEXT_FILE = "headwater-{version}-images.tar.gz"
BOM_FILE = "headwater-{version}.cdx.json"


def commit_time_s(root: Path = ROOT) -> int:
    """Return when the commit was made that `root` is at, in seconds since 1970.

    Ends this program with a sentence where files differ from that commit.
    """
    changed = run_tool("git", "-C", str(root), "status", "--porcelain").splitlines()
    if changed:
        raise SystemExit(
            f"{len(changed)} files differ from the commit, {changed[0][3:]} first: a release is of"
            " one commit; commit them, or take them away"
        )
    return int(run_tool("git", "-C", str(root), "log", "-1", "--format=%ct"))


def release(folder: Path) -> list[str]:
    """Fill `folder` with a release; return a sentence for everything that is left out."""
    time_s = commit_time_s()
    os.environ["SOURCE_DATE_EPOCH"] = str(time_s)  # for hatchling and dpkg-deb
    version = version_of()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report("building the wheels and the source distribution")
    left_out = _add_own_wheels(folder)
    run_tool(str(UV), "build", "-q", "--sdist", "--out-dir", str(folder), str(ROOT))
    (folder / ".gitignore").unlink(missing_ok=True)
    for architecture in MACHINES:
        if reason := deb_obstacle(architecture):
            left_out.append(f"the package for {architecture}: {reason}")
        else:
            report(f"building the package for {architecture}")
            build(architecture, folder, version)
    report("packing what the images are built of, and listing what all of it consists of")
    context = image_context((ROOT / DOCKERFILE).read_text(), tracked(ROOT))
    packed = pack(ROOT, context, time_s)
    (folder / CONTEXT_FILE.format(version=version)).write_bytes(packed)
    (folder / BOM_FILE.format(version=version)).write_text(bill_of_materials(time_s))
    (folder / SUMS).write_text(checksums(folder))
    return left_out


def deb_obstacle(architecture: str) -> str:
    """Return a sentence about why no package for `architecture` can be built; empty: it can."""
    if shutil.which("dpkg-deb") is None:
        return "dpkg-deb is not installed: apt-get install dpkg"
    machine = MACHINES[architecture]
    built = [package for package in packages_of(machine) if not package.has_wheel]
    return next(filter(None, (obstacle(package, machine) for package in built)), "")


def tracked(root: Path) -> list[str]:
    """Return the paths that git keeps below `root`."""
    return run_tool("git", "-C", str(root), "ls-files", "-z").rstrip("\0").split("\0")


def image_context(dockerfile: str, paths: Iterable[str]) -> list[str]:
    """Return those of `paths` that a Dockerfile copies, and its own."""
    patterns = [
        pattern.rstrip("/")
        for line in re.findall(r"(?m)^COPY (?!--from)(.+)$", dockerfile)
        for pattern in line.split()[:-1]
    ]
    # As in Dockerfiles a `*` ends at a slash; what is below a folder that matches comes with it.
    regex = "|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns)
    copied = re.compile(rf"(?:{regex})(?:/.*)?")
    return sorted(path for path in paths if path == DOCKERFILE or copied.fullmatch(path))


def pack(root: Path, paths: Iterable[str], time_s: int) -> bytes:
    """Return a tar.gz of files below `root`, the same bytes for the same files and time."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=time_s) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in paths:
            file = root / path
            entry = tarfile.TarInfo(path)
            entry.size = file.stat().st_size
            entry.mtime = time_s
            entry.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)
    return packed.getvalue()


def bill_of_materials(time_s: int) -> str:
    """Return what Headwater with all extras consists of, as CycloneDX in JSON.

    uv gives each export a time and a number of its own; they are made those of the content.
    """
    options = ("--frozen", "--no-dev", "--all-extras", "-q", "--format", "cyclonedx1.5")
    listed = json.loads(run_tool(str(UV), "export", *options, "--directory", str(ROOT)))
    listed["metadata"]["timestamp"] = datetime.fromtimestamp(time_s, UTC).isoformat()
    del listed["serialNumber"]
    content = json.dumps(listed, sort_keys=True)
    listed["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, content).urn
    return json.dumps(listed, indent=1, sort_keys=True) + "\n"


def checksums(folder: Path) -> str:
    """Return the SHA-256 of each file in `folder`, in the form that `sha256sum --check` reads."""
    return "".join(
        f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != SUMS
    )


def _add_own_wheels(folder: Path) -> list[str]:
    """Build both wheels of Headwater; return a sentence where one cannot be had."""
    add_own_wheel(folder, compiled=False)
    pure = set(folder.iterdir())
    add_own_wheel(folder, compiled=True)
    if set(folder.iterdir()) == pure:
        return ["the compiled wheel: no C compiler with Python's headers was found"]
    return []


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the release goes; what is there goes")
    folder = parser.parse_args().folder
    left_out = release(folder)
    for file in sorted(folder.iterdir()):
        sys.stdout.write(f"{file.stat().st_size / 1e6:7.2f} MB  {file.name}\n")
    for reason in left_out:
        sys.stdout.write(f"left out: {reason}\n")


if __name__ == "__main__":
    main()
