"""Whatever is typed, the answer is one of the four statuses: nothing that is typed is a bug."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.cli import main
from headwater.cli.frame import COMMANDS

# Those that serve or follow would not end; `demo` and `user …` ask for nothing that is typed.
ENDING = [
    name
    for name in COMMANDS
    if name not in {"broker", "tail", "demo"} and not name.startswith("user ")
]
WORDS = [
    *("--json", "--check", "--skip-bad", "--origin", "--wait", "--help", "--", "-", "", " "),
    *("--events", "--map", "--output", "--lateness", "--config", "--set", "--broker", "--timeout"),
    *("--user", "--as", "-n", "--count", "--bogus", "--json=1", "-x", "--events=good.jsonl"),
    *("good.hw", "faulty.hw", "binary", "empty", "folder", "nowhere", "good.jsonl", "packed.gz"),
    *("torn.gz", "\udcff", "ä" * 300, "x" * 5000, "/dev/null", "good.toml", "faulty.toml"),
    *("2s", "-1", "nan", "1e9", "HW101", "HW999", "type==Temp", "timestamp=time", "=", ",", '"'),
    *("http://127.0.0.1:1", "mqtt://127.0.0.1:1", "http://[", "mqtt://", "file:///etc/passwd"),
    *("mqtt.port=1", "mqtt.port=x", "=1", "mqtt.users=good.toml", "log.level=", "out.jsonl"),
]
# No argument of a process can have the character NUL.
TYPED = st.text(st.characters(exclude_characters="\0"), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind; the module's tests run in it."""
    folder = tmp_path_factory.mktemp("fuzz")
    good = "event Temp(val: float)\nsubscription Cold from me to a detect Temp(val < 0)\n"
    events = b'{"type": "Temp", "timestamp": 1, "val": -1}\n' * 3
    for name, data in {
        "good.hw": good.encode(),
        "faulty.hw": b"subscription S from",
        "binary": bytes(range(256)) * 9,
        "empty": b"",
        "good.jsonl": events,
        "packed.gz": gzip.compress(events),
        "torn.gz": gzip.compress(events * 99)[:40],
        "good.toml": b"[mqtt]\nport = 1\n",
        "faulty.toml": b"[mqtt\n",
    }.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    (folder / "machine").mkdir()
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@settings(max_examples=300)
@given(st.sampled_from(ENDING), st.lists(st.sampled_from(WORDS) | TYPED, max_size=6))
@example("ls", ["--broker", "http://\udcff"])
@example("ls", ["--broker", "http://ä..ö:1"])
@example("ls", ["--broker", f"http://{'a' * 70}.b:1"])
@example("submit", ["good.hw", "--broker", "mqtt://ä..ö:1"])
@example("submit", ["good.hw", "--broker", f"mqtt://{'a' * 70}.b:1"])
@example("submit", ["good.hw", "--broker", "http://127.0.0.1:1", "--user", "\udcff"])
def test_whatever_is_typed_has_a_status(folder, name, words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_BROKER", "http://127.0.0.1:1")
        patch.setenv("HEADWATER_PASSWORD", "x")
        patch.setattr("headwater.cli.reach.DEFAULT_BROKER", "http://127.0.0.1:1")
        # What sets up a machine is given one of its own: as root it would change this one.
        place = ["--root", str(folder / "machine")] if name.endswith("install") else []
        assert main([*name.split(), *place, *words]) in {0, 1, 2, 3}
    (folder / "good.hw").write_text(
        "event Temp(val: float)\nsubscription Cold from me to a detect Temp(val < 0)\n"
    )
