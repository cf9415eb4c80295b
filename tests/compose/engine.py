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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import release
from debian_roots import CACHE, PATH, bootstrapped, run_in

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("dockerd", "docker", "docker-compose", "debootstrap")
LEFT_OUT = ("var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*", "usr/share/locale/*")
BARE = ("python3", "python3-venv", "ca-certificates")
PYTHONS = ("python:3.11-slim-bookworm", "python:3.11-bookworm")
MOSQUITTO, PROMETHEUS = "eclipse-mosquitto:2", "prom/prometheus:v2.53.4"
OWNED = {"mosquitto/data": 1883, "prometheus": 65534}
EXTRAS = ("joining", "discovery", "server")  # of both images
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


def imported(engine: Engine, root: Path, name: str) -> None:
    """An image of a root folder, under a name."""
    left_out = [f"--exclude=./{one}" for one in LEFT_OUT]
    words = ["docker", "-H", engine.host, "import", "-", name]
    tar = ["tar", "-C", str(root), *left_out, "-c", "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as packed:
        subprocess.run(words, stdin=packed.stdout, check=True, stdout=subprocess.DEVNULL)
    assert packed.returncode == 0


def base_images(engine: Engine) -> None:
    """The images that the files name, but for Grafana's, which Debian does not have.

    The test is skipped where Debian's packages cannot be had, or the engine runs no container.
    """
    try:
        _base_images(engine)
        engine.docker("run", "--rm", "--network", "bridge", PYTHONS[0], "true")
    except (SystemExit, AssertionError) as error:
        pytest.skip(f"no containers of Debian's packages here: {str(error)[-600:]}")


def _base_images(engine: Engine) -> None:
    with ThreadPoolExecutor() as made:  # wheels are fetched meanwhile
        fetched = made.submit(wheels)
        python_images(engine)
        server_images(engine)
        fetched.result()
    if (
        GRAFANA not in engine.images()
    ):  # never started, but looked for: its queries are asked elsewhere
        engine.docker("tag", PYTHONS[0], GRAFANA)


def python_images(engine: Engine) -> None:
    """Python, as both of our images are built of it."""
    if PYTHONS[0] not in engine.images():
        root = bootstrapped("python", *BARE)
        imported(engine, root, PYTHONS[0])
        engine.docker("tag", PYTHONS[0], PYTHONS[1])


def servers_root() -> Path:
    """The root of Python's image with two servers more."""
    root, complete = CACHE / "servers", CACHE / "servers.done"
    if not complete.exists():
        shutil.rmtree(root, ignore_errors=True)
        run("cp", "-a", str(bootstrapped("python", *BARE)), str(root))
        run_in(root, "apt-get", "-q", "update")
        install = ("apt-get", "-q", "-y", "--no-install-recommends", "install")
        run_in(root, *install, "mosquitto", "prometheus", DEBIAN_FRONTEND="noninteractive")
        complete.touch()
    return root


def server_images(engine: Engine) -> None:
    """The images of mosquitto and Prometheus, of one root: they differ in what is begun."""
    if PROMETHEUS not in engine.images():
        root = servers_root()
        for path, owner in OWNED.items():
            (root / path).mkdir(parents=True, exist_ok=True)
            os.chown(root / path, owner, owner)
        imported(engine, root, MOSQUITTO)
        begun = f'FROM {MOSQUITTO}\nENTRYPOINT ["/bin/prometheus"]\n'
        words = ["docker", "-H", engine.host, "build", "-q", "-t", PROMETHEUS, "-"]
        run(*words, stdin=begun.encode())


def wheels() -> Path:
    """All that the images need of Python's packages, built here as builds have no network."""
    uv = ROOT / ".venv" / "tools" / "bin" / "uv"
    export = ["export", "--frozen", "--no-dev", "--no-emit-project", "-q"]
    export += [word for extra in EXTRAS for word in ("--extra", extra)]
    needed = run(str(uv), *export, "--directory", str(ROOT))
    folder, built = CACHE / "wheels", CACHE / "requirements.txt"
    if not built.exists() or built.read_text() != needed:
        folder.mkdir(parents=True, exist_ok=True)
        listed = CACHE / "requirements.new"
        listed.write_text(needed)
        pip = [sys.executable, "-m", "pip"]
        run(*pip, "wheel", "-q", "--no-deps", "-w", str(folder), "-r", str(listed), timeout_s=1200)
        version = run(str(uv), "--version").split()[1]
        run(*pip, "download", "-q", "-d", str(folder), f"uv=={version}", "hatchling")
        listed.rename(built)
    return folder


def context(folder: Path) -> Path:
    """What docker-compose.yml stands in: a release's context of images, wheels, and secrets."""
    copied = release.image_context((ROOT / release.DOCKERFILE).read_text(), release.tracked(ROOT))
    for path in copied:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    ignored = shutil.ignore_patterns("__pycache__", "secrets", "wheels")
    shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=ignored, dirs_exist_ok=True)
    for name in ("docker-compose.yml", ".dockerignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "deploy" / "wheels").mkdir()
    for wheel in wheels().iterdir():
        os.link(wheel, folder / "deploy" / "wheels" / wheel.name)
    make = [sys.executable, str(ROOT / "deploy" / "make_secrets.py")]
    run(*make, str(folder / "deploy" / "secrets"), "--owner", "0")
    return folder
