"""The example in each command's help works as it stands, in a clone with a broker running."""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.frame import COMMANDS, module_of
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker, client

ROOT = Path(__file__).parents[2]
# tests/headwater/demo and tests/server, as they take half a minute; tests/headwater/test_cli_drain,
# as it takes a broker that plans with others; tests/broker/network/test_absence_processes, as a
# broker has to be away; tests/broker/engine/test_wild_process, as one has to be suspended;
# tests/headwater/network/test_network_processes, as there have to be links;
# tests/broker/admission, as that makes an invite and a folder; tests/broker/links/test_discovery,
# as somebody has to announce himself
NOT_HERE = {
    *("demo", "server run", "server status", "server tables", "server migrate", "drain"),
    *("server mend", "server compact"),
    *("forget", "take-over", "resume", "topology", "flows", "invite", "join", "discover"),
}
ENDLESS = {"broker", "tail"}
OWN = "from headwater import Function\nHalf = Function(lambda x: x / 2)\n"


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    """A broker with the weather subscriptions installed, where all commands look for one."""
    folder = tmp_path_factory.mktemp("examples")
    data = folder / "data"
    settings = f"--set=broker.data_dir={data}", "--set=broker.run_given_functions=true"
    with RunningBroker(folder, CONFIG, *settings) as broker:
        status, _ = broker.get(
            "/v1/subscriptions?client=cli", "POST", (ROOT / "examples/weather.hw").read_bytes()
        )
        assert status == 200
        yield {
            "HEADWATER_BROKER": f"http://127.0.0.1:{broker.port('http')}",
            "HEADWATER__HTTP__PORT": "0",
            "HEADWATER__BROKER__DATA_DIR": str(folder / "other"),
            "PYTHONPATH": str(ROOT),
        }
        assert broker.end() == 0


def words_of(name: str) -> list[str]:
    """The command's example as a shell would take it, its ports free ones."""
    module = module_of(name)
    first = module.EXAMPLE.strip().partition("\n")[0]  # each further one has a test of its own
    line = first.partition(" #")[0].partition(" >>")[0]
    words = []
    for word in shlex.split(line.replace("mqtt.port=1884", "mqtt.port=0")):
        found = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(word))]
        words += found if "*" in word else [word]
    assert words[: 1 + len(name.split())] == ["headwater", *name.split()]
    return words[1:]


@pytest.mark.parametrize("name", [n for n in COMMANDS if n not in NOT_HERE | ENDLESS])
def test_the_example_of_a_command_works(name, environ, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environ = environ | {"HEADWATER_CONTEXTS": str(tmp_path / "contexts.toml")}
    if name in {"user list", "user passwd", "user remove"}:  # about what the first example made
        assert run(words_of("user add"), environ, tmp_path) == (0, "")
    if name in {"token ls", "token remove"}:
        assert run(words_of("token add"), environ, tmp_path) == (0, "")
    if name in {"context select", "context remove"}:
        assert run(words_of("context add"), environ, tmp_path) == (0, "")
    if name.startswith("functions"):
        (tmp_path / "own.py").write_text(OWN)
    if name == "functions remove":
        assert run(words_of("functions add"), environ, tmp_path) == (0, "")
    if name == "restore":
        assert run(words_of("backup"), environ, tmp_path) == (0, "")
        environ = environ | {"HEADWATER__BROKER__DATA_DIR": str(tmp_path / "restored")}
    if name == "broker rename":
        (tmp_path / "roof" / "data").mkdir(parents=True)
        (tmp_path / "roof" / "broker.toml").write_text('[broker]\nname = "roof"\n')
        environ = environ | {"HEADWATER__BROKER__DATA_DIR": str(tmp_path / "roof" / "data")}
    assert run(words_of(name), environ, tmp_path) == (0, "")


def run(words, environ, folder):
    """The command's status, and what it says on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli", *words],
        cwd=folder,
        env=os.environ | environ,
        input="sesame\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


def test_the_example_of_broker_works_until_ctrl_c(environ, tmp_path):
    with started("broker", environ, tmp_path) as process:
        assert " ready " in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_the_example_of_tail_ends_with_its_count(environ, tmp_path):
    """Of a subscription by the example's name, as the results of the other one take a while."""
    text = "event Probe(v: int) subscription ColdStation from me to a detect Probe"
    own = [f"--set=broker.data_dir={tmp_path}/data"]
    with RunningBroker(tmp_path, CONFIG, *own) as broker:
        assert broker.get("/v1/subscriptions", "POST", text.encode())[0] == 200
        url = f"http://127.0.0.1:{broker.port('http')}"
        with started("tail", environ | {"HEADWATER_BROKER": url}, tmp_path) as process:

            async def publish():
                async with client(broker.port()) as one, asyncio.timeout(PATIENCE_S):
                    while process.poll() is None:
                        await one.publish("headwater/events/Probe/p", '{"v": 1}', qos=1)

            asyncio.run(publish())
            assert process.returncode == 0
            assert process.stdout.read().count(" ColdStation Probe=") == 3
            assert process.stderr.read() == ""


@contextlib.contextmanager
def started(name, environ, folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater.cli", *words_of(name)],
        cwd=folder,
        env=os.environ | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
