"""The laboratory on six brokers that decide where its tasks run finds what one engine finds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_laboratory_runs_on_six_brokers(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/placement/run_laboratory.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=230,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("; 0 missing, 0 more\n")
    found = re.findall(r"(\w+) (\d+)[,;]", done.stdout.splitlines()[-1])
    assert {name for name, count in found if int(count)} >= {"FaceOfArrival", "HumidOut", "TempOut"}
