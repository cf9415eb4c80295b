"""What a broker installs and loads."""

import subprocess
import sys
from pathlib import Path

from bench.footprint import DISK_GOAL_MB, UNWANTED, closure, own_roots, roots_of, size_mb, start

ROOT = Path(__file__).resolve().parents[2]
# Only drawing and planning offline may ask for what a broker's machine has not got.
WITHOUT = """
import importlib, pkgutil, sys
for name in ("numpy", "networkx", "uvloop", "highspy", "matplotlib"):
    sys.modules[name] = None
for root in ("language", "broker", "simulation", "planner.rounds", "headwater.cli"):
    for module in pkgutil.walk_packages(importlib.import_module(root).__path__, root + "."):
        if not module.name.endswith(("__main__", ".plots")):
            importlib.import_module(module.name)
"""


def test_what_a_broker_installs_stays_small() -> None:
    """Numpy alone took 73 MB; an SD card and a container's layer pay for each."""
    packages = closure()
    assert {"msgspec", "sqlalchemy", "aiohttp", "multidict"} <= set(packages)
    assert not set(UNWANTED) & set(packages)
    roots = [*own_roots(), *(root for package in packages.values() for root in roots_of(package))]
    assert 30.0 < size_mb(roots) < DISK_GOAL_MB


def test_every_module_loads_without_what_is_optional() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, check=True)


def test_a_broker_process_maps_no_numpy() -> None:
    """A library that is loaded late, by way of another, shows in what the process has mapped."""
    assert start().unwanted == ()
