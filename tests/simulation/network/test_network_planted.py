"""Mistakes in the protocol between brokers are found, each within 200 seeds.

Each is planted in the core or in what drives it. `make test` begins at a seed that is known to show
it, and goes on from there where another change has moved it; `make long` begins at the first.
"""

import pytest
from msgspec.structs import replace

from broker.core.exchange.host import Host
from broker.core.network import network_broker
from broker.core.networked.networked import NetworkedBroker
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.engine.ingest.network_clocks import NetworkClocks
from broker.engine.ingest.source_clocks import SourceClocks
from broker.network.frames import told
from broker.network.neighbours.sessions import FrameSender
from broker.network.neighbours.ways import Came, Claim
from broker.network.origin.own import OwnLog
from broker.network.replication import progress
from broker.network.replication.progress import StoredUpto
from broker.network.routing.advertisement.messages import Want
from broker.network.routing.router import Router
from simulation.network import scenario
from tests.simulation.planted import found_from

pytestmark = pytest.mark.timeout(600)

OFTEN_MS = 20


def a_gap_that_is_passed_over(patch):
    take = Host.take

    def greedy(self, what):
        known = self.durable.network.upstream.get(what.origin)
        if known is not None and known.position is not None:
            what = replace(what, after=min(what.after, known.position))
        take(self, what)

    patch.setattr(Host, "take", greedy)
    uncounted(patch)


def uncounted(patch):
    """Nor is anything missed by the count of frames, which tells of a gap first."""
    patch.setattr(Came, "goes_on", lambda self, after, serial: True)


def claims_that_are_taken_while_a_question_is_open(patch):
    patch.setattr(Host, "_is_open", lambda self, origin: False)


def positions_told_before_they_are_stored(patch):
    say = FrameSender.say

    def early(self, peer, body, after=0, events=-1):
        say(self, peer, body, 0 if isinstance(body, StoredUpto) else after, events)

    patch.setattr(FrameSender, "say", early)
    told_often(patch)


def told_often(patch):
    """Origins hear at once how far a host is: else they rarely do just before one ends."""
    patch.setattr(progress, "STORED_MS", OFTEN_MS)
    patch.setattr(progress, "STORED_MS_MAX", OFTEN_MS)


def events_kept_for_the_foremost_host_alone(patch):
    def trim(self):
        most = max([one.position for one in self.hosts.values()], default=self.position)
        while self._kept and self._kept[0][0] <= most:
            self._kept.popleft()

    patch.setattr(OwnLog, "_trim", trim)


def events_kept_that_no_snapshot_holds(patch):
    restore = OwnLog.restore

    def forgetting(self, state):
        restore(self, {**state, "positions": [], "events": b"\x90"})

    patch.setattr(OwnLog, "restore", forgetting)


def positions_that_no_snapshot_holds(patch):
    restore = NetworkedBroker.restore

    def forgetting(self, state):
        restore(self, state)
        for one in self.upstream.values():
            one.position = None

    patch.setattr(NetworkedBroker, "restore", forgetting)


def a_promise_that_goes_too_far(patch):
    would_promise = NetworkClocks.would_promise

    def bold(self, type_name, now):
        found = would_promise(self, type_name, now)
        return None if found is None else found + self._lateness_ms + 3_000

    patch.setattr(NetworkClocks, "would_promise", bold)


def origins_that_nobody_waits_for(patch):
    patch.setattr(NetworkClocks, "watermark", SourceClocks.watermark)


def claims_over_what_was_missed(patch):
    def extend(self, after, upto, watermarks):
        self.after = min(self.upto, after) if self.after is None else self.after
        self.upto = upto
        self.watermarks.update(watermarks)

    patch.setattr(Claim, "extend", extend)
    uncounted(patch)


def operators_that_are_not_said_anew(patch):
    reset = Router.neighbour_reset

    def sparing(self, neighbour):
        return [one for one in reset(self, neighbour) if not isinstance(one.message, Want)]

    patch.setattr(Router, "neighbour_reset", sparing)
    patch.setattr(Router, "_plan_anew", lambda self, types, out: None)


def events_from_afar_that_no_record_holds(patch):
    patch.setattr(told.Forwarded, "outlasts", False)


def hosts_that_no_record_holds(patch):
    patch.setattr(told.HostInterested, "outlasts", False)


def an_origin_that_is_not_waited_for_while_it_is_cut_off(patch):
    lost = Host.lost

    def hasty(self, origin, back_within_ms):
        lost(self, origin, back_within_ms)
        self.durable.network._intake.clock.forget_origin(origin)

    patch.setattr(Host, "lost", hasty)


def promises_of_others_that_no_snapshot_holds(patch):
    restore = NetworkClocks.restore

    def forgetting(self, state):
        restore(self, state)
        self._afar.clear()

    patch.setattr(NetworkClocks, "restore", forgetting)


def an_answer_that_claims_more_than_it_holds(patch):
    def short(*asked):
        for what, last, _ in offers(*asked):
            yield replace(what, positions=what.positions[:2], events=_two(what.events)), last, False

    offers = network_broker.offers
    patch.setattr(network_broker, "offers", short)


def _two(events):
    return packed(unpacked(events)[:2])


# A seed at which each is found.
PLANTED = {
    a_gap_that_is_passed_over: 49,
    claims_that_are_taken_while_a_question_is_open: 7,
    positions_told_before_they_are_stored: 0,
    events_kept_for_the_foremost_host_alone: 0,
    positions_that_no_snapshot_holds: 2,
    a_promise_that_goes_too_far: 0,
    origins_that_nobody_waits_for: 0,
    claims_over_what_was_missed: 49,
    operators_that_are_not_said_anew: 0,
    events_from_afar_that_no_record_holds: 0,
    hosts_that_no_record_holds: 0,
    an_origin_that_is_not_waited_for_while_it_is_cut_off: 0,
    promises_of_others_that_no_snapshot_holds: 19,
    events_kept_that_no_snapshot_holds: 56,
    an_answer_that_claims_more_than_it_holds: 0,
}


def test_a_run_in_which_origins_are_told_often_is_good(monkeypatch):
    told_often(monkeypatch)
    scenario.run(PLANTED[positions_told_before_they_are_stored])


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    found_from(scenario.run, "network", PLANTED[plant])


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found_from_the_first_seed_on(plant, monkeypatch):
    plant(monkeypatch)
    assert found_from(scenario.run, "network") <= PLANTED[plant]
