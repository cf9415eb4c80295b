"""What a replay writes depends on specification and events alone.

Neither the order of lines, nor files and their forms, nor the size of batches, nor the hash seed is
to be seen in a byte of it: of every worked case of the language, and of the examples' recordings.
"""

import csv
import gzip
import io
import json
import os
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from headwater import Engine
from headwater.cli import main
from tests.examples.test_replays import EXPECTED, INPUTS
from tests.oracles.worked_cases import WORKED_CASES

ROOT = Path(__file__).resolve().parent.parent.parent
BATCHES = (1, 7, 1_000)

# Replays each case of a folder; one process for all, as each start costs more than a case.
SCRIPT = """
import sys
from pathlib import Path
from headwater.cli import main
folder, out = Path(sys.argv[1]), Path(sys.argv[2])
for spec in sorted(folder.glob("*.hw")):
    events = str(spec.with_suffix(".jsonl"))
    words = ["replay", str(spec), "--events", events, "--output", str(out / spec.stem)]
    assert main(words) == 0, spec.read_text()
"""


def replay_all(folder: Path, out: Path, hash_seed: str) -> dict[str, bytes]:
    out.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT, str(folder), str(out)]
    done = subprocess.run(
        command, env=environment, capture_output=True, check=False, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def write_cases(folder: Path, draw: random.Random | None) -> None:
    folder.mkdir()
    for number, case in enumerate(WORKED_CASES):
        events = [json.dumps(event) + "\n" for event in case.events]
        if draw is not None:
            draw.shuffle(events)
        (folder / f"{number:03}.hw").write_text(case.text, encoding="utf-8")
        (folder / f"{number:03}.jsonl").write_text("".join(events), encoding="utf-8")


@pytest.mark.timeout(150)
def test_every_worked_case_is_replayed_alike_in_any_order_under_any_hash_seed(tmp_path):
    write_cases(tmp_path / "told", None)
    write_cases(tmp_path / "shuffled", random.Random(3))
    first = replay_all(tmp_path / "told", tmp_path / "first", "1")
    again = replay_all(tmp_path / "shuffled", tmp_path / "again", "977")
    assert first == again
    assert len(first) == len(WORKED_CASES)
    lines = {name: data.count(b"\n") for name, data in first.items()}
    assert lines == {f"{n:03}": len(case.expected) for n, case in enumerate(WORKED_CASES)}


def split(path: Path, folder: Path, parts: int, draw: random.Random) -> list[str]:
    """The lines of a recording in another order and in several files, some of them packed."""
    first, *lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    head = [first]
    if path.name.endswith(".jsonl.gz"):
        head, lines = [], [first, *lines]
    draw.shuffle(lines)
    names = []
    for part in range(parts):
        data = b"".join([*head, *lines[part::parts]])
        name = folder / path.name.replace(".", f"-{part}.", 1)
        if part % 2:
            name = name.with_suffix("")
            name.write_bytes(data)
        else:
            name.write_bytes(gzip.compress(data))
        names.append(str(name))
    return names


def replayed(name: str, inputs: list[str], output: Path, hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "headwater.cli", "replay", str(ROOT / f"examples/{name}.hw")]
    done = subprocess.run(
        [*command, *inputs, "--output", str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return output.read_bytes()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_is_replayed_alike_from_any_files_under_any_hash_seed(name, tmp_path):
    words = shlex.split(INPUTS[name])
    recordings = [word for word in words if word.endswith(".gz")]
    options = words[1 + len(recordings) :]
    draw = random.Random(name)
    parts = [part for one in recordings for part in split(ROOT / one, tmp_path, 3, draw)]
    inputs = ["--events", *draw.sample(parts, len(parts))]
    first = replayed(name, words, tmp_path / "first", "1")
    assert replayed(name, [*inputs, *options], tmp_path / "again", "977") == first
    assert first.count(b"\n") == sum(EXPECTED[name].values())


def mappings(name: str) -> list[dict]:
    """The recording of an example in order, as a program would push it."""
    (word,) = [word for word in shlex.split(INPUTS[name]) if word.endswith(".gz")]
    text = gzip.decompress((ROOT / word).read_bytes()).decode()
    if word.endswith(".jsonl.gz"):
        events = [json.loads(line) for line in text.splitlines()]
    else:
        events = [
            {
                "type": row["attribute"],
                "source": row.get("station") or row.get("mote"),
                "timestamp": int(row["timestamp_ms"]),
                "value": float(row["value"]),
                **({"location": row["place"]} if "place" in row else {}),
                **({"position": [float(row["lat"]), float(row["lon"])]} if "lat" in row else {}),
            }
            for row in csv.DictReader(io.StringIO(text))
        ]
    return sorted(events, key=lambda event: event["timestamp"])


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["people", "steam", "fog"])
def test_an_example_pushed_in_parts_gives_what_a_replay_gives(name, tmp_path, monkeypatch):
    """In order, or with lateness and delays within it: the same results with the same ids."""
    monkeypatch.chdir(ROOT)
    output = tmp_path / "results"
    words = ["replay", f"examples/{name}.hw", *shlex.split(INPUTS[name]), "--output", str(output)]
    assert main(words) == 0
    wanted = Counter(output.read_text(encoding="utf-8").splitlines())
    text = (ROOT / "examples" / f"{name}.hw").read_text(encoding="utf-8")
    events = mappings(name)
    draw = random.Random(name)
    for size in BATCHES:
        lateness_ms = draw.choice((1_000, 600_000))
        at = [
            (event["timestamp"] + draw.randint(0, lateness_ms), draw.random()) for event in events
        ]
        order = sorted(range(len(events)), key=at.__getitem__)
        for late, arriving in ((0, events), (lateness_ms, [events[one] for one in order])):
            engine = Engine(text, lateness_ms=late)
            found = []
            for begin in range(0, len(arriving), size):
                found += engine.push(arriving[begin : begin + size])
            found += engine.finish()
            assert Counter(map(line, found)) == wanted
            assert "late" not in engine.counts["dropped"]


def line(result: dict) -> str:
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))
