"""Builds of neighbouring versions of links in one network, and a network updated as it works."""

import asyncio
import shutil
from pathlib import Path

import pytest

from broker.network.session.frames import OLDEST, VERSION
from tests.broker.network.fleet import NAMES
from tests.broker.network.test_network_processes import run
from tests.broker.running import ROOT

FRAMES = "broker/network/session/frames.py"


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


def without(*kinds):
    """Changes that take these from the frames that a build can read."""
    return [("broker/network/frames/frames.py", f"    | {kind}\n", "") for kind in kinds]


# What a build cannot read that came with a version. It says nothing of it either, as it agrees on
# the lesser version with all others: of a frame that it cannot read a test hears as malformed.
CAME_WITH = {
    2: without("Probe", "Echo", "RemoteCall", "FunctionsStated", "FunctionWanted", "FunctionGiven"),
    3: [
        *without("StoredUpto", "Advanced", "Awaited"),
        ("broker/network/frames/frames.py", "Frame | ShortFrame\n", "Frame\n"),
        ("broker/network/frames/frames.py", "Decoder(AnyFrame | Bundle)", "Decoder(AnyFrame)"),
        ("broker/network/session/limits.py", "        75_000\n", "        2_000\n"),
        ("broker/network/session/limits.py", "    ] = 190_000\n", "    ] = 6_500\n"),
    ],
    4: without("Succeeded", "Led"),
}


def earlier(folder, version):
    """A build of an earlier version, which cannot read what came with later ones.

    It also says something every two seconds, and cuts who is silent for long.
    """
    changes = [change for since, came in CAME_WITH.items() if since > version for change in came]
    return build(folder, (FRAMES, f"VERSION = {VERSION}", f"VERSION = {version}"), *changes)


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
    assert max(CAME_WITH) == VERSION, "what cannot be read is that of this version"
    updated(tmp_path, earlier(tmp_path / "earlier", VERSION - 1), None)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_network_is_updated_from_the_oldest_version(tmp_path: Path):
    updated(tmp_path, earlier(tmp_path / "oldest", OLDEST), None)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_network_is_updated_to_the_version_to_come(tmp_path: Path):
    updated(tmp_path, None, later(tmp_path / "later"))
