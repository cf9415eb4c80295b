"""`headwater submit --dry-run` at a real broker, by HTTP and by MQTT."""

import json

import pytest

from headwater.cli import main
from tests.broker.running import RunningBroker

FIRST = """
event A(n: int)
event B(n: int)
define Low() detect A(n < 5)
define High() detect A(n > 5)
subscription S from anna to lamp detect Low then B within 5 s
subscription T from anna to lamp detect High then B within 5 s
"""
SECOND = FIRST.replace("subscription T", "subscription T seq 2").replace("High then", "Low then")


@pytest.fixture
def broker(tmp_path):
    with RunningBroker(tmp_path) as running:
        yield running


@pytest.mark.parametrize("face", ["http", "mqtt"])
def test_it_is_told_what_a_text_would_change(broker, face, tmp_path, capsys):
    at = ["--broker", f"{face}://127.0.0.1:{broker.port(face)}", "--as", "anna"]
    first, second = tmp_path / "first.hw", tmp_path / "second.hw"
    first.write_text(FIRST)
    second.write_text(SECOND)
    assert main(["submit", str(first), *at, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "S of anna: new\n  Low: begins with nothing\n" in told
    assert "Holds: S: at most " in told
    assert main(["ls", *at]) == 0
    assert "no subscriptions" in capsys.readouterr().out
    assert main(["submit", str(first), *at]) == 0
    capsys.readouterr()
    assert main(["submit", str(second), *at, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "S of anna: there already, goes on with its state",
        "T of anna: changed, begins anew",
        "  Low: begins with nothing",  # as it would if S were not there
        "  T: what is held of B goes on",
        "High: ends, as nobody needs it then",
    ]
    assert main(["submit", str(second), *at, "--dry-run", "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["dry_run"]
    assert [row["change"] for row in reply["subscriptions"]] == ["same", "changed"]


def test_what_would_be_refused_is_told_with_its_place(broker, tmp_path, capsys):
    at = ["--broker", f"http://127.0.0.1:{broker.port('http')}"]
    faulty = tmp_path / "faulty.hw"
    faulty.write_text("event A()\nsubscription S from anna to lamp detect B\n")
    assert main(["submit", str(faulty), *at, "--dry-run"]) == 2
    assert f"{faulty}:2:" in capsys.readouterr().err
    assert main(["submit", str(faulty), *at, "--dry-run", "--wait"]) == 2
    assert "nothing to wait for" in capsys.readouterr().err
