"""The same input gives the same effects, whatever PYTHONHASHSEED is."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
import hashlib
from tests.broker.network.session.test_session import SMALL, run
from tests.broker.network.overlay.network import Network
from tests.broker.network.overlay.test_topology import grown
told = [run(seed, restarts=True, steps=200, **SMALL).world.log for seed in range(10)]
for seed in range(5):
    network = grown(seed, 8)
    network.settle()
    told += [network.told, {name: one.state() for name, one in network.all.items()}]
print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


def test_links_and_trees_are_the_same_under_any_hash_seed():
    def told(seed):
        environ = os.environ | {"PYTHONHASHSEED": seed}
        words = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(
            words, cwd=ROOT, env=environ, check=True, capture_output=True, text=True
        )
        return done.stdout

    assert told("0") == told("1") != ""
