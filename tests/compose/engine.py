"""A container engine of the tests' own, with images made of Debian's packages and of wheels.

Nothing is pulled: the images that the files name are made here under their names, of Debian's
packages, and Python's packages are built into wheels beforehand. What is dear to make is kept in
the cache of `debian_roots` for the next run.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from debian_roots import CACHE, PATH, bootstrapped

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("dockerd", "docker", "docker-compose", "debootstrap")
LEFT_OUT = ("var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*", "usr/share/locale/*")
PYTHONS = ("python:3.11-slim-bookworm", "python:3.11-bookworm")
SERVERS = {
    "eclipse-mosquitto:2": (),
    "prom/prometheus:v2.53.4": ("--change", 'ENTRYPOINT ["/bin/prometheus"]'),
}
OWNED = {"mosquitto/data": 1883, "prometheus": 65534}
CONTEXT = (
    "deploy",
    "docker-compose.yml",
    ".dockerignore",
    "pyproject.toml",
    "uv.lock",
    "README.md",
)
PACKAGES = ("LICENSE", ".ci", "broker", "headwater", "language", "planner", "server", "simulation")
GRAFANA = "grafana/grafana:11.2.2"
START_S = 60.0


def missing() -> str:
    """Why there can be no engine; empty: there can."""
    if os.geteuid() != 0:
        return "a container engine needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"{', '.join(absent)} are not installed" if absent else ""


def run(*words: str, timeout_s: float = 600.0, stdin: bytes | None = None, **more: str) -> str:
    """What a program prints; fails with what it complained of."""
    environ = os.environ | {"PATH": f"{PATH}:{os.environ['PATH']}"} | more
    done = subprocess.run(
        words, env=environ, capture_output=True, input=stdin, timeout=timeout_s, check=False
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")[-6000:]
        raise AssertionError(f"{' '.join(words)[:200]}: {done.returncode}\n{said}")
    return done.stdout.decode(errors="replace")


class Engine:
    """A daemon with folders of its own; `docker` and `compose` speak to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/docker.sock"
        self._log = (folder / "dockerd.log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; the test is skipped where this machine lets nobody do so."""
        words = ["dockerd", "--iptables=false", "--ip6tables=false", "--host", self.host]
        words += ["--data-root", str(CACHE / "engine"), "--exec-root", str(self.folder / "exec")]
        words += ["--pidfile", str(self.folder / "docker.pid")]
        environ = os.environ | {"PATH": f"{PATH}:{os.environ['PATH']}"}
        self._process = subprocess.Popen(words, env=environ, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.docker("version")
            except AssertionError:
                time.sleep(0.3)
            else:
                return
        self.stop()
        said = (self.folder / "dockerd.log").read_text(errors="replace")[-600:]
        pytest.skip(f"the container engine does not start here: {said}")

    def stop(self) -> None:
        """End it; containers of its own have been taken down before."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)
        self._log.close()

    def docker(self, *words: str, timeout_s: float = 600.0) -> str:
        return run("docker", *words, timeout_s=timeout_s, DOCKER_HOST=self.host)

    def images(self) -> list[str]:
        return self.docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()


def imported(engine: Engine, root: Path, name: str, *options: str) -> None:
    """An image of a root folder, under a name."""
    left_out = [f"--exclude=./{one}" for one in LEFT_OUT]
    packed = subprocess.Popen(
        ["tar", "-C", str(root), *left_out, "-c", "."], stdout=subprocess.PIPE
    )
    words = ["docker", "-H", engine.host, "import", *options, "-", name]
    subprocess.run(words, stdin=packed.stdout, check=True, stdout=subprocess.DEVNULL)
    assert packed.wait() == 0


def base_images(engine: Engine) -> None:
    """The images that the files name, but for Grafana's, which Debian does not have."""
    there = engine.images()
    if PYTHONS[0] not in there:
        root = bootstrapped("python", "python3", "python3-venv", "ca-certificates")
        imported(engine, root, PYTHONS[0])
        engine.docker("tag", PYTHONS[0], PYTHONS[1])
    for name, options in SERVERS.items():
        if name not in there:
            root = bootstrapped("servers", "mosquitto", "prometheus")
            for path, owner in OWNED.items():
                (root / path).mkdir(parents=True, exist_ok=True)
                os.chown(root / path, owner, owner)
            imported(engine, root, name, *options)
    if GRAFANA not in there:  # never started, but looked for: its queries are asked elsewhere
        engine.docker("tag", PYTHONS[0], GRAFANA)


def wheels() -> Path:
    """All that the images need of Python's packages, built here as builds have no network."""
    lock = (ROOT / "uv.lock").read_bytes()
    folder, noted = CACHE / "wheels", CACHE / "wheels.lock"
    if not noted.exists() or noted.read_bytes() != lock:
        folder.mkdir(parents=True, exist_ok=True)
        uv = ROOT / ".venv" / "tools" / "bin" / "uv"
        version = run(str(uv), "--version").split()[1]
        export = ["export", "--frozen", "--no-dev", "--no-emit-project", "--extra", "server", "-q"]
        listed = CACHE / "requirements.txt"
        listed.write_text(run(str(uv), *export, "--directory", str(ROOT)))
        pip = [sys.executable, "-m", "pip"]
        run(*pip, "wheel", "-q", "--no-deps", "-w", str(folder), "-r", str(listed), timeout_s=1200)
        run(*pip, "download", "-q", "-d", str(folder), f"uv=={version}", "hatchling")
        noted.write_bytes(lock)
    return folder


def context(folder: Path) -> Path:
    """A copy of what images are built of, with wheels and secrets."""
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "secrets", "wheels")
    for name in (*CONTEXT, *PACKAGES, "examples"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "deploy" / "wheels").mkdir()
    for wheel in wheels().iterdir():
        os.link(wheel, folder / "deploy" / "wheels" / wheel.name)
    make = [sys.executable, str(ROOT / "deploy" / "make_secrets.py")]
    run(*make, str(folder / "deploy" / "secrets"), "--owner", "0")
    return folder
