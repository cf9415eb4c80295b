"""Compiles the passes of broker/engine/native where there is a compiler; else Python does them.

Owns the way from C to a module of this Python, for a checkout (`make setup` runs this file) and for
a wheel (hatchling asks the hook). Invariant: nothing fails for want of a compiler or of Python's
headers; what happened is said in a sentence.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # in a checkout nobody asks the hook

    class BuildHookInterface:  # type: ignore[no-redef]
        """In hatchling's place."""


FOLDER = Path("broker", "engine", "native")
OPTIONS = ("-O3", "-DNDEBUG", "-fPIC", "-fwrapv", "-Wall")
PURE = "HEADWATER_PURE_PYTHON"


def compile_passes(root: Path) -> tuple[Path | None, str]:
    """Compile what is not compiled yet: the module, or None, and what to say of it."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    linker = _linker()
    if os.environ.get(PURE, "0") not in {"", "0"}:
        return None, f"{PURE} is set: Python alone"
    if not suffix or linker is None:
        return None, "found no C compiler: Python alone, which is slower"
    folder = root / FOLDER
    module = folder / f"_passes{suffix}"
    known = sorted(folder.glob("*.[ch]"))
    digest = sha256(b"".join(path.read_bytes() for path in known)).hexdigest()
    if module.exists() and digest.encode() in module.read_bytes():
        return module, "the passes are compiled"
    paths = sysconfig.get_paths()
    made = module.with_name(f"{module.name}.{os.getpid()}")
    command = [
        *(*linker, *OPTIONS, f'-DSOURCES="{digest}"'),
        f'-DFILES="{" ".join(path.name for path in known)}"',
        *(f"-I{place}" for place in dict.fromkeys((paths["include"], paths["platinclude"]))),
        *(*(str(path) for path in known if path.suffix == ".c"), "-o", str(made)),
    ]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            made.replace(module)
            return module, "compiled the passes"
        said = done.stderr.decode(errors="replace").splitlines()
        reason = next((line for line in said if "error" in line), "no reason")
    except OSError as error:  # the compiler cannot be run, or nothing made is found
        reason = str(error)
    with suppress(OSError):  # where nothing can be written, nothing was
        made.unlink(missing_ok=True)
        module.unlink(missing_ok=True)  # it is of other sources
    return None, f"could not compile the passes, so Python alone, which is slower: {reason}"


def _linker() -> list[str] | None:
    """The command that makes modules of this Python; another compiler where that is not there."""
    known = shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    if not known:
        return None
    chosen = shlex.split(os.environ.get("CC", ""))
    for compiler in (chosen, known[:1], ["cc"], ["gcc"], ["clang"]):
        if compiler and shutil.which(compiler[0]):
            return [*compiler, *known[1:]]
    return None


class CustomBuildHook(BuildHookInterface):
    """What hatchling asks before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A wheel with the module is for this Python alone; one without it is for any."""
        root = Path(self.root)
        module, said = compile_passes(root)
        sys.stderr.write(f"headwater: {said}\n")
        if module is not None and version != "editable":
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"][str(module)] = str(FOLDER / module.name)


if __name__ == "__main__":
    sys.stdout.write(f"setup: {compile_passes(Path(__file__).resolve().parent.parent)[1]}\n")
