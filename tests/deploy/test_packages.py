"""Which packages each machine takes, and what its Debian package says of them."""

import os

import debian_roots
import pytest
import source_wheels
from deb import MACHINES, control_text
from locked import ARCHITECTURES, LockedPackage, locked_packages
from wheels import extras_of


@pytest.fixture(params=sorted(MACHINES))
def architecture(request):
    return request.param


def names(machine, *options):
    return {package.name for package in locked_packages(machine, "--no-dev", *options)}


def test_conditions_are_judged_by_the_machine_that_a_package_is_for():
    """And not by the one that builds, on which a plain pip would judge them."""
    assert "uvloop" in names("x86_64")
    assert "uvloop" in names("aarch64")
    assert names("i686") == names("armv7l") == names("x86_64") - {"uvloop"}


def test_every_package_has_a_wheel_or_a_source(architecture):
    machine = MACHINES[architecture]
    extras = [word for extra in extras_of(machine) for word in ("--extra", extra)]
    for package in locked_packages(machine, "--no-dev", *extras):
        assert package.has_wheel or package.source_hash.startswith("sha256:"), package.name
        assert package.source_hash in package.line


def test_wheels_of_another_machine_do_not_count():
    """Of msgspec there are wheels of 64 bits alone, of networkx one for every machine."""
    wheels = {
        machine: {package.name: package.has_wheel for package in locked_packages(machine)}
        for machine in ARCHITECTURES
    }
    assert [wheels[machine]["msgspec"] for machine in ("x86_64", "aarch64")] == [True, True]
    assert [wheels[machine]["msgspec"] for machine in ("i686", "armv7l")] == [False, False]
    assert all(wheels[machine]["networkx"] for machine in wheels)


def test_what_builds_wheels_is_locked_and_needs_no_compiler():
    tools = locked_packages("i686", "--only-group", "building")
    assert {"setuptools", "setuptools-scm"} <= {tool.name for tool in tools}
    assert all(tool.has_wheel and "--hash=sha256:" in tool.line for tool in tools)


def test_a_package_without_the_extra_for_joining_says_so(architecture):
    control = control_text(architecture, "1.0", 7)
    machine = MACHINES[architecture]
    assert f"Architecture: {architecture}\n" in control
    offered = {entry.name: entry for entry in locked_packages(machine, "--extra", "joining")}
    assert ("does without cryptography" in control) == (not offered["cryptography"].has_wheel)
    assert control.endswith("\n")
    assert all(line.strip() for line in control.splitlines()), "dpkg takes no empty line"


def test_what_cannot_be_built_says_what_is_needed(monkeypatch, tmp_path):
    package = LockedPackage("thing", "1.0", "thing==1.0", False, "sha256:00")
    monkeypatch.setattr(source_wheels, "CACHE", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match=r"thing 1.0 has no wheel for i686.*needs root"):
        source_wheels.add_wheels([package], "i686", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian_roots, "PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="apt-get install debootstrap"):
        source_wheels.add_wheels([package], "i686", tmp_path)
    (tmp_path / "debootstrap").touch(mode=0o755)
    monkeypatch.setattr(debian_roots, "EMULATORS", tmp_path / "none")
    monkeypatch.setattr(debian_roots, "is_native", lambda architecture: False)
    with pytest.raises(SystemExit, match=r"no emulator of armhf is registered.*binfmt-support"):
        source_wheels.add_wheels([package], "armv7l", tmp_path)
    with pytest.raises(SystemExit, match="neither a wheel for armv7l nor a source"):
        source_wheels.add_wheels([package._replace(source_hash="")], "armv7l", tmp_path)


def test_a_wheel_that_was_built_before_is_taken(monkeypatch, tmp_path):
    package = LockedPackage("thing", "1.0", "thing==1.0", False, "sha256:00")
    monkeypatch.setattr(source_wheels, "CACHE", tmp_path / "cache")
    kept = tmp_path / "cache/built/thing-1.0-i386"
    kept.mkdir(parents=True)
    (kept / "thing-1.0-cp311-cp311-linux_i686.whl").write_bytes(b"it")
    source_wheels.add_wheels([package], "i686", tmp_path)
    assert (tmp_path / "thing-1.0-cp311-cp311-linux_i686.whl").read_bytes() == b"it"
