"""Whoever types what README and the tutorial say, in their order, sees what they say."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.test_docs import FENCE, ROOT, saved

PATIENCE_S = 15.0
LINE = re.compile(
    r"^(?:    |\$ )((?:headwater|mosquitto_pub|mosquitto_sub|curl|python) .*)$", re.MULTILINE
)
# Stand before the real programs: ports are the test's own, and a tail ends after its result.
SHIMS = {
    "headwater": 'exec "{python}" -P -m headwater.cli "$@"',
    "python": 'exec "{python}" "$@"',
    "mosquitto_pub": 'exec "{mosquitto_pub}" -p "$MQTT_PORT" "$@"',
    "mosquitto_sub": 'exec "{mosquitto_sub}" -p "$MQTT_PORT" -C 1 "$@"',
}


class Walk:
    """A reader's terminals, in one folder."""

    def __init__(self, folder: Path, programs: dict[str, str]) -> None:
        self.folder = folder
        self.started: dict[str, subprocess.Popen[str]] = {}
        self.typed: list[str] = []
        self.printed: dict[str, str] = {}
        self._port = 0
        shims = folder / "bin"
        shims.mkdir()
        for name, text in SHIMS.items():
            if name in ("headwater", "python") or name in programs:
                shim = shims / name
                script = text.format(python=sys.executable, **programs)
                shim.write_text(f"#!/bin/sh\n{script}\n")
                shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
        self.environ = os.environ | {
            "PATH": f"{shims}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HEADWATER__MQTT__PORT": "0",
            "HEADWATER__HTTP__PORT": "0",
        }

    def type(self, line: str) -> None:
        """One line, as the reader would; what does not end by itself goes on behind."""
        self.typed.append(line)
        words = shlex.split(line, comments=True)
        if words[:2] == ["headwater", "broker"]:
            self._start(line)
            ready = ""
            while " ready " not in ready:  # a line tells what was found on the disk before
                ready = self.started[line].stderr.readline()
                assert ready, "the broker ended"
            found = dict(re.findall(r"(mqtt|http)=127\.0\.0\.1:(\d+)", ready))
            self.environ["MQTT_PORT"] = found["mqtt"]
            self.environ["HEADWATER_BROKER"] = f"http://127.0.0.1:{found['http']}"
        elif words[:2] == ["headwater", "tail"]:
            self._start(f"{line} --count 1")
            self._until(lambda status: status["http_followers"] == 1)
        elif line.endswith("&"):
            self._start(line.removesuffix("&"))
            self._until(lambda status: status["mqtt"]["subscriptions"] == 1)
        else:
            done = subprocess.run(
                line,
                shell=True,
                cwd=self.folder,
                env=self.environ,
                input="sesame\n",
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), line
            self.printed[line] = done.stdout

    def said(self, words: str) -> str:
        """What a command that goes on behind has printed, once it has ended."""
        (process,) = [one for line, one in self.started.items() if line.startswith(words)]
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        return out

    def get(self, path: str) -> str:
        url = self.environ["HEADWATER_BROKER"] + path
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    def _start(self, line: str) -> None:
        self.started[line] = subprocess.Popen(
            f"exec {line}",
            shell=True,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _until(self, reached) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not reached(json.loads(self.get("/v1/status"))):
            assert time.monotonic() < deadline_s

    def end(self) -> None:
        for process in self.started.values():
            process.kill()
            process.communicate()


def lines_of(page: str) -> list[str]:
    """What is to be typed, in its order; blocks that are to be saved are no commands."""
    text = (ROOT / page).read_text(encoding="utf-8")
    kept = FENCE.sub(lambda block: block[0] if block[1] == "console" else "", text)
    return LINE.findall(kept)


@pytest.fixture
def walk(request, tmp_path):
    programs = {}
    if "find_program" in request.fixturenames:
        find = request.getfixturevalue("find_program")
        programs = {name: find(name) for name in ("mosquitto_pub", "mosquitto_sub")}
    walk = Walk(tmp_path, programs)
    yield walk
    walk.end()


@pytest.mark.timeout(60)
def test_the_readme_can_be_followed(walk):
    saved("README.md", walk.folder)
    for line in lines_of("README.md"):
        walk.type(line)
    assert [line.split()[1] for line in walk.typed] == [
        "check",
        "replay",
        "broker",
        "submit",
        "tail",
    ]
    result = json.loads(walk.printed["headwater replay frost.hw --events morning.jsonl"])
    assert result["values"] == {"temp": -1.5, "humidity": 91.0}
    assert result["end"] - result["start"] == 3 * 60_000


@pytest.mark.timeout(60)
@pytest.mark.program("mosquitto_pub")
@pytest.mark.program("mosquitto_sub")
def test_the_tutorial_can_be_followed(walk, find_program):
    saved("docs/tutorial.md", walk.folder)
    for line in lines_of("docs/tutorial.md"):
        walk.type(line)
    replayed = walk.printed["headwater replay warm.hw --events rooms.jsonl"]
    assert len(replayed.splitlines()) == 2
    assert walk.printed["python warm.py"].splitlines() == [
        "{'room': 'house/kitchen', 'degrees': 24.5}",
        "{'room': 'house/kitchen', 'degrees': 25.5}",
    ]
    told = walk.said("headwater tail")
    assert 'room="house/kitchen" degrees=24.5' in told
    assert told.count("\n") == 1
    rejected = walk.said("mosquitto_sub")
    assert "wrong_type" in rejected
    assert 'headwater_events_dropped_total{reason="wrong_type"} 1.0' in walk.get("/metrics")
    assert (walk.folder / "headwater-data").is_dir()
    # The last section starts a broker anew; its file names the users that were made.
    walk.end()
    words = ["headwater", "config", "show", "--config", "site.toml"]
    walk.type(shlex.join(words))
    assert "rights.toml" in walk.printed[shlex.join(words)]
    walk.type("headwater broker --config site.toml --set mqtt.host=127.0.0.1")
    walk.environ["HEADWATER_PASSWORD"] = "sesame"
    walk.type("headwater ls --user anna")
    assert "WarmAfterOpening" in walk.printed["headwater ls --user anna"]


def test_the_tutorials_variant_with_first_has_one_result(walk):
    saved("docs/tutorial.md", walk.folder)
    spec = walk.folder / "warm.hw"
    assert "then[..1 min]" in spec.read_text()
    spec.write_text(spec.read_text().replace("then[..1 min]", "then[..1 min, first]"))
    walk.type("headwater replay warm.hw --events rooms.jsonl")
    (result,) = walk.printed[walk.typed[-1]].splitlines()
    assert json.loads(result)["events"] == {"opened": ["d1"], "warm": ["t1"]}


def script_of(page: str) -> str:
    """What the page has saved and typed, in its order."""
    lines = ["set -e", "ip link set lo up"]
    for block in FENCE.finditer((ROOT / page).read_text(encoding="utf-8")):
        if block[2]:
            lines.append(f"cat > {block[2]} <<'END'\n{block[3]}END")
        elif block[1] == "sh":
            lines.append(block[3])
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.program("unshare")
@pytest.mark.program("prometheus")
@pytest.mark.program("mosquitto_pub")
def test_the_first_network_can_be_followed(tmp_path):
    """In a network namespace of its own, where the ports that the page names are free."""
    environ = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    words = [
        "unshare",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "bash",
        "-c",
    ]
    done = subprocess.run(
        [*words, script_of("docs/first-network.md")],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout
    for name in ("roof", "kitchen", "hall", "attic", "cellar", "garden"):
        assert re.search(rf"^{name} +ready ", told, re.MULTILINE), name
    assert '"state":"accepted"' in told
    (result,) = re.findall(r'^{"subscription":"Damp",.*', told, re.MULTILINE)
    assert json.loads(result)["values"] == {"value": 78.5}
    assert re.search(r"^garden +roof +up +2 ", told, re.MULTILINE)
    assert "nothing is wrong with 6 brokers" in told
    assert """[{'subscription': 'Damp', 'values': '{"value":78.5}'}]""" in told
    assert re.search(r'"value":\[[0-9.]+,"6"\].*\n.*"value":\[[0-9.]+,"1"\]', told)
