"""Root folders of bare Debian systems, in which packages are built and tests install them.

Owns the folders, made once by debootstrap and kept in `HEADWATER_COMPOSE_CACHE` (default:
~/.cache/headwater-compose), and the way to run a program in one. Must not know what is built or
tested there. Invariant: a folder that is returned is complete, as `NAME.done` says beside it.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(
    os.environ.get("HEADWATER_COMPOSE_CACHE") or Path.home() / ".cache" / "headwater-compose"
)
SUITE = "bookworm"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # Debian's own come first
EMULATORS = Path("/proc/sys/fs/binfmt_misc")
# By dpkg's name of an architecture: qemu's, and the machines that run its programs themselves.
QEMU = {"amd64": "x86_64", "arm64": "aarch64", "armhf": "arm", "i386": "i386"}
NATIVE = {
    "amd64": ("x86_64",),
    "arm64": ("aarch64",),
    "armhf": ("armv7l",),
    "i386": ("x86_64", "i686"),
}
EMULATION = (
    "install qemu-user-static and binfmt-support; where no service registers them, as in a"
    " container: `mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc` and"
    " `update-binfmts --enable`"
)


def missing(architecture: str) -> str:
    """Return a sentence about what a root of `architecture` still needs; empty: nothing."""
    if os.geteuid() != 0:
        return f"a Debian root of {architecture} needs root: run it with sudo"
    if shutil.which("debootstrap", path=PATH) is None:
        return f"a Debian root of {architecture} needs debootstrap: apt-get install debootstrap"
    emulator = EMULATORS / f"qemu-{QEMU[architecture]}"
    if not is_native(architecture) and not emulator.exists():
        return f"no emulator of {architecture} is registered: {EMULATION}"
    return ""


def is_native(architecture: str) -> bool:
    """Return if this machine runs programs of `architecture` without an emulator."""
    return platform.machine() in NATIVE[architecture]


def bootstrapped(name: str, *packages: str, architecture: str = "") -> Path:
    """Return the root folder `name` with Debian's `packages`, which is made where it is missing.

    Ends this program with debootstrap's complaint if that fails.
    """
    root, complete = CACHE / name, CACHE / f"{name}.done"
    if not complete.exists():
        shutil.rmtree(root, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        words = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}"]
        words += [f"--arch={architecture}"] if architecture else []
        report(f"making a Debian root with {', '.join(packages)} in {root}")
        run_tool(*words, SUITE, str(root), PATH=f"{PATH}:{os.environ['PATH']}")
        complete.touch()
    return root


def run_tool(*words: str, **environ: str) -> str:
    """Return what a program prints; ends this one with its complaint where it fails."""
    done = subprocess.run(  # noqa: S603  # the words are those of these programs
        words, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)[:200]} …: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def run_in(root: Path, *words: str, **environ: str) -> None:
    """Run a program in `root` with nothing of this environment."""
    cleared = ["env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8"]
    cleared += [f"{name}={value}" for name, value in environ.items()]
    run_tool("/usr/sbin/chroot", str(root), *cleared, *words)


def report(step: str) -> None:
    """Print a step of long work to standard error as a line."""
    sys.stderr.write(f"{step}\n")
    sys.stderr.flush()
