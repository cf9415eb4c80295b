"""Builds of neighbouring versions of links in one network, and a network updated as it works."""

import asyncio
import shutil
from pathlib import Path

import pytest

from broker.core.links.frames import OLDEST, VERSION
from tests.broker.network.fleet import NAMES
from tests.broker.network.test_network_processes import run
from tests.broker.running import ROOT

FRAMES = "broker/core/links/frames.py"


def build(folder, *changes):
    """A copy of the product with pieces of its files replaced: (file, piece, instead)."""
    folder.mkdir()
    for package in ("headwater", "language", "planner"):
        (folder / package).symlink_to(ROOT / package)
    shutil.copytree(ROOT / "broker", folder / "broker")
    for name, piece, instead in changes:
        file = folder / name
        text = file.read_text()
        assert text.count(piece) == 1, (name, piece)
        file.write_text(text.replace(piece, instead))
    return folder


def later(folder):
    """A build of the version to come: its hello says more, and it speaks no older than this one."""
    return build(
        folder,
        (FRAMES, f"VERSION = {VERSION}", f"VERSION = {VERSION + 1}"),
        (FRAMES, f"OLDEST = {OLDEST}", f"OLDEST = {VERSION}"),
        (FRAMES, "    secured: bool = False\n", "    secured: bool = False\n    said: str = 'x'\n"),
    )


def earlier(folder):
    """A build of version 1, which cannot read what came with version 2."""
    return build(
        folder,
        (FRAMES, f"VERSION = {VERSION}", "VERSION = 1"),
        ("broker/core/network/frames.py", "    | Probe\n", ""),
        ("broker/core/network/frames.py", "    | Echo\n", ""),
        ("broker/core/network/frames.py", "    | RemoteCall\n", ""),
        ("broker/core/network/frames.py", "    | FunctionsStated\n", ""),
        ("broker/core/network/frames.py", "    | FunctionWanted\n", ""),
        ("broker/core/network/frames.py", "    | FunctionGiven\n", ""),
    )


def updated(folder, before, after):
    """Update one broker after the other under load, `None` being this very build."""

    async def disturb(fleet):
        for name in NAMES:
            fleet.builds.pop(name, None)
            if after is not None:
                fleet.builds[name] = after
            await fleet.restart(name)
        for name in NAMES:
            counts = fleet.network(name)["counts"]
            assert counts["frames_malformed"] == counts["frames_refused"] == 0

    builds = {} if before is None else dict.fromkeys(NAMES, before)
    asyncio.run(run(folder, 3, 60, disturb, builds))


@pytest.mark.timeout(180)
def test_a_network_is_updated_from_the_version_before(tmp_path: Path):
    assert OLDEST == VERSION - 1, "what cannot be read is that of version 1"
    updated(tmp_path, earlier(tmp_path / "earlier"), None)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_network_is_updated_to_the_version_to_come(tmp_path: Path):
    updated(tmp_path, None, later(tmp_path / "later"))
