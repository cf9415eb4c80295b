"""Every example replayed gives the number of results that its independent script computed."""

import gzip
import json
import os
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from headwater.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
EXPECTED = json.loads((ROOT / "examples" / "expected.json").read_text(encoding="utf-8"))
INPUTS = {
    "weather": "--events examples/data/grand_st_bernard.csv.gz examples/data/singapore.csv.gz",
    "fog": "--events examples/data/molene.csv.gz",
    "steam": "--events examples/data/steam.csv.gz --map source=mote,location=place",
    "people": "--events examples/data/people.jsonl.gz",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_has_the_results_that_were_computed_for_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    output = tmp_path / "results.jsonl"
    words = ["replay", f"examples/{name}.hw", *shlex.split(INPUTS[name]), "--output", str(output)]
    assert main(words) == 0
    results = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert Counter(result["subscription"] for result in results) == EXPECTED[name]
    assert len({result["id"] for result in results}) == len(results)


def test_the_examples_page_tells_these_commands_and_these_numbers():
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    told = [line for line in page.splitlines() if line.startswith("$ headwater replay ")]
    assert told == [
        f"$ headwater replay examples/{name}.hw {words}" for name, words in INPUTS.items()
    ]
    for name, counts in EXPECTED.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [{name}.hw]")]
        assert row.endswith(f"| {sum(counts.values())} |")


def replayed(seed: str, spec: Path, events: Path) -> bytes:
    command = [sys.executable, "-m", "headwater.cli", "replay", str(spec), "--events", str(events)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
    )
    return done.stdout


@pytest.mark.timeout(120)
def test_the_order_of_lines_and_the_hash_seed_do_not_show_in_the_bytes(tmp_path):
    source = ROOT / "examples" / "data" / "people.jsonl.gz"
    lines = gzip.decompress(source.read_bytes()).splitlines(keepends=True)
    shuffled = tmp_path / "shuffled.jsonl"
    shuffled.write_bytes(b"".join(random.Random(7).sample(lines, len(lines))))
    spec = ROOT / "examples" / "people.hw"
    first = replayed("1", spec, source)
    assert first
    assert replayed("2", spec, shuffled) == first
