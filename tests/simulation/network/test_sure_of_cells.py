"""Whom a cell waited for when it began keeps no broker unsure, of which it needs nothing."""

import json

import pytest
from msgspec.structs import replace

from broker.core.messages import SourceAdvertised, SpecificationSubmitted
from broker.network.frames.messages import CellPlaced
from tests.simulation.network.town import LINE, Town

TYPES = {"b0": "A", "b1": "B", "b2": "C", "b3": "D"}
EVENTS = "".join(f"event {name}(n: int)\n" for name in TYPES.values())
NEAR = EVENTS + "subscription Near from x to alerts\ndetect A and B within 5 s\n"
FAR = EVENTS + "subscription Far from x to alerts\ndetect C and D within 5 s\n"
SURE_S = 10


class CellTown(Town):
    """Where what is submitted runs in cells, at its home; a type is sent at each broker."""

    def __init__(self):
        super().__init__(1, LINE)
        for site in self.sites.values():
            options = replace(site.machine.options, cells=True)
            site.machine = replace(site.machine, options=options)

    def begin(self):
        for site in self.sites.values():
            site.start()
        for name, kind in TYPES.items():
            data = json.dumps({"types": [kind]}).encode()
            self.sites[name].tell(SourceAdvertised(f"s-{name}", data), {})
        self.run(SURE_S * 1_000)

    def submit(self, text, at):
        self.sites[at].tell(SpecificationSubmitted("x", str(at), text), {})
        self.run(SURE_S * 1_000)

    def unsure(self):
        """The (broker, neighbour) of which something is asked only with partners, and may not."""
        networks = {name: site.process.network for name, site in self.sites.items()}
        return [
            (name, peer)
            for name, one in networks.items()
            for peer in one.sessions.standing
            if peer in networks and one.partners.joined(peer).types
            if not one.partners.is_sure(peer)
        ]


@pytest.mark.parametrize(("near", "to"), [("b0", "b1"), ("b1", "b0"), ("b0", "b2")])
@pytest.mark.parametrize("far", ["b0", "b1"])
def test_all_are_sure_when_all_have_answered_a_cell_that_moved(near, to, far):
    """It begins with the origins that its home knows of, and asks them one after the other."""
    town = CellTown()
    town.begin()
    town.submit(NEAR, near)
    town.sites[near].hear(CellPlaced(f"{near}/1", to))
    town.submit(FAR, far)
    (cell,) = [one for one in town.sites[near].process.network.cells() if one.cell == f"{near}/1"]
    assert (cell.host, cell.state) == (to, "active")
    joined = [
        (site.name, peer)
        for site in town.sites.values()
        for peer in site.process.network.sessions.standing
        if peer in town.sites and site.process.network.partners.joined(peer).types
    ]
    assert joined
    assert not town.unsure()
