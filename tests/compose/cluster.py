"""The cluster of docker-compose.yml, as it stands, and a sensor whose every reading is counted."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.compose.engine import Engine, run

PROJECT = "hwtest"
PATIENCE_S = 120.0
SPARK_PATIENCE_S = 300.0  # a job that failed is begun again after 1, 2, 5, 15, then 60 s
NETWORKS = ("network", "ls", "-q", "--filter", f"label=com.docker.compose.project={PROJECT}")
SPECIFICATION = """
event Probe(n: int)
subscription Probes from demo to desk
detect Probe as probe
assign n = probe.n
"""
# Runs in the broker's image: publishes readings until it is told to end, then says how many were.
SENSOR = """
import itertools, signal, sys, time
from headwater.client import broker_for, publisher_for
from pathlib import Path
going = True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, stop)
password = Path("/run/secrets/sensors").read_text().strip()
broker = broker_for("mqtt://mqtt:1883", "sensors", password, None, 30.0)
publisher = publisher_for(broker, sys.argv[1])
print("connected", flush=True)
for n in itertools.count():
    if not going:
        break
    said = {"id": f"{sys.argv[1]}-{n}", "timestamp": int(time.time() * 1000), "n": n}
    publisher.send("Probe", sys.argv[1], [said])
    time.sleep(0.1)
publisher.wait(60.0)
print("published", n, "refused", publisher.refused, flush=True)
"""
ASK = """
import base64, sys, urllib.request
path, user, body = sys.argv[1:]
question = urllib.request.Request("http://127.0.0.1:8080" + path, data=body.encode() or None)
question.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
question.add_header("Content-Type", "text/plain")
print(urllib.request.urlopen(question, timeout=20).read().decode())
"""
HISTORY = """
import json
from server.history import table_of
rows = table_of("/data/history", ["subscription", "events"]).to_pylist()
print(json.dumps([row["events"] for row in rows if row["subscription"] == "Probes"]))
"""


class Cluster:
    """See the module. `context` is the folder that docker-compose.yml stands in."""

    def __init__(self, engine: Engine, context: Path) -> None:
        self.engine = engine
        self.context = context
        self.published: dict[str, int] = {}  # by sensor that has ended

    def compose(self, *words: str, timeout_s: float = 900.0) -> str:
        file = str(self.context / "docker-compose.yml")
        before = ["docker-compose", "-p", PROJECT, "-f", file]
        return run(*before, *words, timeout_s=timeout_s, DOCKER_HOST=self.engine.host)

    def up(self, *words: str) -> str:
        """Bring it up; Grafana's image is not to be had here, its queries are asked elsewhere."""
        return self.compose("up", "-d", "--no-build", "--scale", "grafana=0", *words)

    def down(self, *words: str) -> None:
        """Take it down.

        An engine may keep an endpoint of a container that is gone, most likely of one that was
        taken off its network and brought back; the network goes once that is taken off by force.
        """
        try:
            self.compose("down", *words)
        except AssertionError as error:
            if "active endpoints" not in str(error):
                raise
            for network in self.engine.docker(*NETWORKS).split():
                listed = json.loads(self.engine.docker("network", "inspect", network))[0]
                for one in listed["Containers"].values():
                    self.engine.docker("network", "disconnect", "-f", network, one["Name"])
            self.compose("down", *words)

    def containers(self, *services: str) -> list[str]:
        """The names of the containers that run."""
        words = ["ps", "--format", "{{.Names}}", "--filter", f"name={PROJECT}_"]
        names = self.engine.docker(*words).split()
        return sorted(name for name in names if not services or name.split("_")[1] in services)

    def ids(self) -> dict[str, str]:
        words = ["ps", "-a", "--format", "{{.Names}} {{.ID}}", "--filter", f"name={PROJECT}_"]
        return dict(line.split() for line in self.engine.docker(*words).splitlines())

    def health(self, container: str) -> str:
        words = [
            "inspect",
            "--format",
            "{{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{end}}",
        ]
        return self.engine.docker(*words, container).strip()

    def until(self, holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"not in time: {self.told()}")
            time.sleep(0.5)

    def until_healthy(self, patience_s: float = PATIENCE_S) -> None:
        """Until each container that has a health check is healthy."""

        def holds() -> bool:
            states = [self.health(name) for name in self.containers()]
            return all(state.endswith(("running", "running healthy")) for state in states)

        self.until(holds, patience_s)

    def inside(self, container: str, *words: str, timeout_s: float = 60.0) -> str:
        return self.engine.docker("exec", container, *words, timeout_s=timeout_s)

    def asked(self, container: str, path: str, user: str = "demo", **more: str) -> dict:
        """The answer of a broker's HTTP face, asked in its own container."""
        password = (self.context / "deploy/secrets" / f"{user}.password").read_text().strip()
        words = ["python", "-c", ASK, path, f"{user}:{password}", more.get("body", "")]
        return json.loads(self.inside(container, *words))

    def found(self) -> int:
        """How many results are in the log of the subscription's home, those of others included."""
        try:
            return self.asked(f"{PROJECT}_pass_1", "/v1/log/offsets", "admin")["end"]
        except (AssertionError, subprocess.TimeoutExpired):
            return 0

    def history(self) -> Counter[str]:
        """The readings of the sensor whose results Spark has, and how often."""
        try:
            said = self.inside(f"{PROJECT}_spark-job_1", "python", "-c", HISTORY)
        except AssertionError:  # it was just begun, or has nothing yet
            return Counter()
        return Counter(one for row in json.loads(said) for one in json.loads(row)["probe"])

    def brokers_known(self) -> list[str]:
        """Whom the home of the subscription reaches."""
        network = self.asked(f"{PROJECT}_pass_1", "/v1/status", "admin")["network"]
        return sorted(set(network["known"]) - set(network["unreachable"]) | {"pass"})

    def told(self) -> str:
        """What there is to see, for a failure."""
        listed = self.engine.docker("ps", "-a", "--format", "{{.Names}} {{.Status}}")
        logs = self.compose("logs", "--no-color", "--tail", "12")
        return f"{listed}\n{logs[-12000:]}"

    # --- the sensor ------------------------------------------------------------------------

    def sense(self, name: str, network: str = "city") -> None:
        """Begin to publish readings in a site, to whatever is called `mqtt` there.

        Returns once it is connected: one that never was is told so at once, and does not wait.
        """
        secret = self.context / "deploy/secrets/sensors.password"
        self.engine.docker(
            "run", "-d", "--name", f"sensor-{name}", "--network", f"{PROJECT}_{network}",
            "-v", f"{secret}:/run/secrets/sensors:ro", "headwater-broker:local",
            "python", "-c", SENSOR, name,
        )  # fmt: skip
        self.until(lambda: "connected" in self.engine.docker("logs", f"sensor-{name}"))

    def sensed(self, name: str) -> int:
        """End it; how many readings it published, all of them acknowledged."""
        self.engine.docker("stop", "-t", "90", f"sensor-{name}", timeout_s=120)
        said = self.engine.docker("logs", f"sensor-{name}")
        assert "refused 0" in said, said
        self.published[name] = int(said.split("published")[1].split()[0])
        return self.published[name]

    def all_in_history(self, name: str, count: int) -> None:
        """Each reading's result is in Spark's history, once."""
        expected = Counter({f"{name}-{n}": 1 for n in range(count)})

        def mine() -> Counter[str]:
            kept = self.history()
            return Counter({one: n for one, n in kept.items() if one.rpartition("-")[0] == name})

        deadline = time.monotonic() + SPARK_PATIENCE_S
        while (kept := mine()) != expected:
            if time.monotonic() > deadline or any(n > 1 for n in kept.values()):
                lost = sorted(expected - kept)[:10]
                more = sorted((kept - expected).items())[:10]
                raise AssertionError(f"of {count}: missing {lost}, too many {more}\n{self.told()}")
            time.sleep(1.0)
