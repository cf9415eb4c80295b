"""The page about joined servers tells what there is."""

import asyncio
import re
import tomllib
from pathlib import Path

from broker.config import load
from headwater.demo.process import free_ports
from tests.broker.bridge.scene import Scene, section

PAGE = Path(__file__).resolve().parents[3] / "docs" / "joining.md"


class Nowhere:
    (port,) = free_ports(1)


def status():
    async def scene():
        return Scene(section(Nowhere)).joined

    return asyncio.run(scene())


def test_every_number_that_is_told_is_on_the_page_and_no_other():
    (_, _, table) = PAGE.read_text().partition("| name | meaning |")
    told = [
        name
        for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE)
        for name in re.findall("`(.*?)`", row)
    ]
    joined = status()
    found = joined.status()["j0"]
    assert sorted(told) == sorted(set(found) - {"address", "state", "reason"})
    assert set(told[:10]) == set(joined.counts())


def test_the_configuration_that_is_shown_is_taken(tmp_path):
    (block,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "site.toml"
    path.write_text(block)
    one = load(path).config.joins["hall"]
    assert one.tls
    assert set(tomllib.loads(block)["joins"]["hall"]) <= set(type(one).__struct_fields__)
    for name in re.findall(r"`([a-z_]+)`", PAGE.read_text()):
        if name.endswith(("_max", "_s")) and name != "packet_bytes_max":
            assert name in type(one).__struct_fields__, name
