"""What the page on MQTT tells a reader to type works, and its tables are those of the code."""

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import fields

import pytest

from broker.core import topics
from broker.mqtt.counters import Counters
from broker.mqtt.limits import MqttLimits
from tests.broker.running import CONFIG, ROOT, RunningBroker

PAGE = (ROOT / "docs" / "mqtt.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ("mosquitto_pub", "mosquitto_sub", "mosquitto_rr")
PATIENCE_S = 10.0


def rows(heading):
    """The cells of the table below a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_limit_is_there_with_its_default_and_what_happens():
    told = rows("Limits")
    limits = MqttLimits()
    expected = [(item.name, str(getattr(limits, item.name))) for item in fields(MqttLimits)]
    assert [(name, default) for name, default, _ in told] == expected
    assert all(len(policy) > 7 for *_, policy in told)


def test_the_topics_are_those_of_the_broker():
    kinds = [topic.split("/")[1] for topic, _ in rows("Topics")]
    written = [topics.reply("submit/x/y"), topics.result("x", "y")]
    written += [topics.actor("x"), topics.late("x"), topics.status("x")]
    written += [topics.suspended("x", "y")]
    own = [*topics.NAMES_AFTER, topics.REJECTED, *(topic.split("/")[0] for topic in written)]
    assert sorted(kinds) == sorted(own)
    assert kinds[: len(topics.NAMES_AFTER)] == list(topics.NAMES_AFTER)


def test_every_counter_and_every_reason_is_there():
    """The reasons are read from the code: a new one has to be told."""
    told = [name for names, *_ in rows("What is counted") for name in re.findall(r"\w+", names)]
    counters = [item.name for item in fields(Counters)]
    assert told[: len(counters)] == counters
    code = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "broker" / "mqtt").rglob("*.py")
    )
    forms = (r'\.drop\(\s*"(\w+)"', r'\breason = "(\w+)"', r'\bend_session\([^)"]*"([a-z_]+)"')
    reasons = [name for form in forms for name in re.findall(form, code)]
    assert len(set(reasons)) >= 9
    assert sorted(told[len(counters) :]) == sorted(set(reasons))


class Terminal:
    """A shell whose lines can be waited for, of commands in the background too."""

    def __init__(self, broker, folder):
        self.broker, self.folder = broker, folder
        self.said = []
        self._lines = queue.Queue()
        self._running = []
        self._threads = []
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        for name in PROGRAMS:
            shim = bin_folder / name
            shim.write_text(f'#!/bin/sh\nexec {shutil.which(name)} -p {broker.port()} "$@"\n')
            shim.chmod(0o755)
        self._environ = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}

    def type(self, command):
        """Run a command to its end, or until it is subscribed where it ends with `&`."""
        before = self._subscriptions()
        words = command.removesuffix("&").rstrip()
        process = subprocess.Popen(
            ["sh", "-c", f"exec {words}"],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        thread = threading.Thread(target=self._read, args=(process.stdout,))
        thread.start()
        self._threads.append(thread)
        self._running.append((command, process))
        if command.endswith("&"):
            deadline_s = time.monotonic() + PATIENCE_S
            while process.poll() is None and self._subscriptions() <= before:
                assert time.monotonic() < deadline_s, command
        else:
            assert process.wait(PATIENCE_S) == 0, command

    def _subscriptions(self):
        return self.broker.get("/v1/status")[1]["mqtt"]["subscriptions"]

    def _read(self, stream):
        for line in stream:
            self._lines.put(line.rstrip("\n"))
        stream.close()

    def expect(self, pattern):
        """Wait for a line in which `…` stands for anything."""
        wanted = re.compile(".*".join(map(re.escape, pattern.split("…"))))
        while not any(wanted.fullmatch(line) for line in self.said):
            try:
                self.said.append(self._lines.get(timeout=PATIENCE_S))
            except queue.Empty:
                pytest.fail(f"no line like {pattern!r} in {self.said}")
        self.said.remove(next(line for line in self.said if wanted.fullmatch(line)))

    def end(self):
        """All that was begun has come to its end."""
        for command, process in self._running:
            assert process.wait(PATIENCE_S) == 0, command

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)


@pytest.mark.program(*PROGRAMS)
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of a Unix shell")
def test_the_commands_do_what_the_page_shows(tmp_path):
    blocks = [match for match in FENCE.finditer(PAGE) if match[1] == "console"]
    for match in FENCE.finditer(PAGE):
        if match[2]:
            (tmp_path / match[2]).write_text(match[3], encoding="utf-8")
    typed = shown = 0
    flags = ("--set", f"broker.data_dir={tmp_path}/data")
    with (
        RunningBroker(tmp_path, CONFIG, *flags) as broker,
        Terminal(broker, tmp_path) as terminal,
    ):
        for block in blocks:
            for line in block[3].splitlines():
                if line == "$ headwater broker":
                    continue  # it runs
                if line.startswith("$ "):
                    terminal.type(line.removeprefix("$ "))
                    typed += 1
                else:
                    terminal.expect(line)
                    shown += 1
            terminal.end()
    assert typed > 20
    assert shown >= 15
