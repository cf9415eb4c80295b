"""The root of a bare system, and a broker that runs in it as its own user.

Owns processes in that root, which `end` ends. No systemd runs there: its part, to start and stop
what the unit says, is played by the tests.
"""

import json
import subprocess
import time
import urllib.request
from pathlib import Path

from debian_roots import bootstrapped

from headwater.demo.process import free_ports

OWN = "amd64"  # packages are not built on other machines yet
BARE = ("python3", "python3-venv", "ca-certificates")


def bare_root(architecture: str = OWN) -> Path:
    """Return the folder of a bare Debian with Python, to be copied before it is used."""
    name = "python" if architecture == OWN else f"pi-{architecture}"
    return bootstrapped(name, *BARE, architecture=architecture)


READY_S = 180.0  # where all is emulated; else it takes a second


class Root:
    """See the module; `place` is the folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (self.port, self.mqtt_port) = free_ports(2)
        self._broker: subprocess.Popen[bytes] | None = None

    def run(self, *words: str, status: int = 0, stdin: str = "") -> str:
        """Run a program in the root; what it prints. Fails where it ends otherwise than said."""
        path = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environ = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": "/root"}
        done = subprocess.run(
            ["/usr/sbin/chroot", str(self.place), *words], env=environ, input=stdin, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == status, (words, done.returncode, done.stdout[-3000:])
        return done.stdout

    def copy(self, file: Path, name: str) -> None:
        """Bring a file into the root."""
        target = self.place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())

    def start(self) -> None:
        """Start the broker as the unit does, and wait until it takes events."""
        unit = (self.place / "etc/systemd/system/headwater.service").read_text()
        lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
        sets = (f"http.port={self.port}", f"mqtt.port={self.mqtt_port}")
        words = lines["ExecStart"].split() + [word for one in sets for word in ("--set", one)]
        user = f"--userspec={lines['User']}:{lines['Group']}"
        command = ["/usr/sbin/chroot", user, str(self.place), *words]
        with (self.place / "var/log/headwater.log").open("ab") as log:
            environ = {"PATH": "/usr/bin:/bin"}
            self._broker = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
        deadline = time.monotonic() + READY_S
        while not self._ready():
            told = (self.place / "var/log/headwater.log").read_text()[-2000:]
            assert self._broker.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.02)

    def resident_mb(self) -> float:
        """Return the memory that the broker's process has, its emulator's included."""
        assert self._broker is not None
        status = Path(f"/proc/{self._broker.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def end(self) -> None:
        """End the broker at once, as a power cut does; nothing where none runs."""
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait(10)
            self._broker = None

    def asked(self, path: str, body: str = "", kind: str = "text/plain") -> dict:
        """Return the answer of the broker's HTTP face."""
        url = f"http://127.0.0.1:{self.port}{path}"
        question = urllib.request.Request(url, data=body.encode() or None)
        question.add_header("Content-Type", kind)
        with urllib.request.urlopen(question, timeout=20) as answer:
            said: dict = json.loads(answer.read())
        return said

    def subscriptions(self) -> list[str]:
        """Return the names of those that are installed."""
        return [one["subscription"] for one in self.asked("/v1/subscriptions")["subscriptions"]]

    def _ready(self) -> bool:
        try:
            return bool(self.asked("/readyz")["ready"])
        except OSError:
            return False
