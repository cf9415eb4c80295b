"""The parts of a release: what the images are built of, the bill of materials, the checksums."""

import gzip
import io
import json
import re
import subprocess
import tarfile

import pytest
import release
from locked import ROOT

DOCKERFILE = """\
FROM base AS tools
COPY pyproject.toml deploy/wheels* /wheels/
COPY broker broker
COPY deploy/*.py deploy/
COPY --from=tools /made /opt
"""
TRACKED = [
    *("README.md", "pyproject.toml", "broker/a.py", "broker/core/b.py", "brokers.md"),
    *("deploy/Dockerfile", "deploy/deb.py", "deploy/pi/install.sh", "deploy/wheels/x.whl"),
    *("tests/broker/c.py", "deploy/pi/d.py"),
]


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_a_context_has_what_the_dockerfile_copies_and_nothing_else():
    assert release.image_context(DOCKERFILE, TRACKED) == [
        *("broker/a.py", "broker/core/b.py", "deploy/Dockerfile", "deploy/deb.py"),
        *("deploy/wheels/x.whl", "pyproject.toml"),
    ]


def test_the_context_of_the_images_is_whole():
    """Each path that the Dockerfile copies has files in it, but for wheels of one's own."""
    dockerfile = (ROOT / release.DOCKERFILE).read_text()
    context = release.image_context(dockerfile, release.tracked(ROOT))
    assert not [path for path in context if path.startswith(("tests/", "docs/", "bench/"))]
    for line in re.findall(r"(?m)^COPY (?!--)(.+)$", dockerfile):
        for pattern in line.split()[:-1]:
            before = pattern.partition("*")[0]
            assert any(path.startswith(before) for path in context), pattern


def test_the_same_files_are_packed_into_the_same_bytes(tmp_path):
    for place, mtime_s in (("a", 1_000), ("b", 2_000_000_000)):
        folder = tmp_path / place / "sub"
        folder.mkdir(parents=True)
        (folder / "run").write_text("#!/bin/sh\n")
        (folder / "run").chmod(0o700)
        (folder / "text").write_text("é")
        (folder / "text").chmod(0o600)
        subprocess.run(["touch", "-d", f"@{mtime_s}", folder / "run", folder / "text"], check=True)
    paths = ["sub/run", "sub/text"]
    packed = release.pack(tmp_path / "a", paths, 1_700_000_000)
    assert packed == release.pack(tmp_path / "b", paths, 1_700_000_000)
    assert packed != release.pack(tmp_path / "b", paths, 1_700_000_001)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        entries = {entry.name: (entry.mode, entry.uid, entry.mtime) for entry in archive}
        assert archive.extractfile("sub/text").read() == "é".encode()
    assert entries == {
        "sub/run": (0o755, 0, 1_700_000_000),
        "sub/text": (0o644, 0, 1_700_000_000),
    }


def test_the_bill_of_materials_has_what_users_run_and_is_the_same_each_time():
    bill = release.bill_of_materials(1_700_000_000)
    assert bill == release.bill_of_materials(1_700_000_000)
    listed = json.loads(bill)
    assert (listed["bomFormat"], listed["metadata"]["timestamp"]) == (
        "CycloneDX", "2023-11-14T22:13:20+00:00",
    )  # fmt: skip
    assert listed["serialNumber"].startswith("urn:uuid:")
    names = {component["name"] for component in listed["components"]}
    assert {"msgspec", "aiohttp", "cryptography", "pyspark"} <= names
    assert not {"pytest", "ruff", "setuptools-scm"} & names, "developers' own are in no release"


def test_checksums_are_as_sha256sum_reads_them(tmp_path):
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / release.SUMS).write_text(release.checksums(tmp_path))
    check = ["sha256sum", "--check", "--strict", release.SUMS]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "a: OK\nb: OK\n"
    (tmp_path / "a").write_bytes(b"c")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_a_release_is_of_a_commit(tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1700000000 +0000")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert release.commit_time_s(tmp_path) == 1_700_000_000
    (tmp_path / "other").write_text("2")
    with pytest.raises(SystemExit, match="1 files differ from the commit, other first"):
        release.commit_time_s(tmp_path)


def test_a_package_that_cannot_be_built_is_left_out_with_its_reason(monkeypatch):
    monkeypatch.setattr(
        release, "obstacle", lambda package, machine: f"{package.name} for {machine} is not there"
    )
    assert release.deb_obstacle("amd64") == "", "all that it needs has wheels"
    assert release.deb_obstacle("i386") == "msgspec for i686 is not there"
    monkeypatch.setattr(release.shutil, "which", lambda name: None)
    assert "apt-get install dpkg" in release.deb_obstacle("amd64")
