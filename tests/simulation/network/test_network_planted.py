"""Mistakes in the protocol between brokers are found, each within 200 seeds.

Each is planted in the core or in what drives it. `make test` begins at a seed that is known to show
it; `make long` at the first.
"""

import pytest
from msgspec.structs import replace

from broker.core.network import frames, told
from broker.core.network.hosting import Hosting
from broker.core.network.linking import Linking
from broker.core.network.networked import NetworkedBroker
from broker.core.network.own import OwnLog
from broker.core.network.sessions import Sessions
from broker.core.network.ways import Claim, Ways
from broker.core.network_clocks import NetworkClocks
from broker.core.routing.router import Router
from broker.core.source_clocks import SourceClocks
from simulation.account import CheckFailedError
from simulation.network import scenario
from simulation.network.process import BrokerProcess
from simulation.network.scenario import RunFailedError

SEEDS = 200

pytestmark = pytest.mark.timeout(600)


def frames_before_the_journal(patch):
    patch.setattr(BrokerProcess, "_may_send", lambda self, frame: True)


def a_gap_that_is_passed_over(patch):
    take = Hosting._take

    def greedy(self, what):
        known = self.durable.network.upstream.get(what.origin)
        if known is not None and known.position is not None:
            what = replace(what, after=min(what.after, known.position))
        take(self, what)

    patch.setattr(Hosting, "_take", greedy)


def claims_that_are_taken_while_a_question_is_open(patch):
    patch.setattr(Hosting, "_is_open", lambda self, origin: False)


def positions_told_before_they_are_stored(patch):
    say = Linking._say

    def early(self, peer, body, after=0, events=-1):
        say(self, peer, body, 0 if isinstance(body, frames.Stored) else after, events)

    patch.setattr(Linking, "_say", early)


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


def frames_of_an_earlier_session(patch):
    patch.setattr(Sessions, "lets_in", lambda self, peer, frame: peer in self)


def claims_over_what_was_missed(patch):
    def extend(self, after, upto, watermarks):
        self.after = min(self.upto, after) if self.after is None else self.after
        self.upto = upto
        self.watermarks.update(watermarks)

    patch.setattr(Claim, "extend", extend)


def ways_that_outlast_their_session(patch):
    patch.setattr(Ways, "leave", lambda self, neighbour: None)


def operators_that_are_not_said_anew(patch):
    reset = Router.neighbour_reset

    def sparing(self, neighbour):
        return [one for one in reset(self, neighbour) if not isinstance(one.message, frames.Want)]

    patch.setattr(frames, "Want", frames.Want, raising=False)
    patch.setattr(Router, "neighbour_reset", sparing)
    patch.setattr(Router, "_plan_anew", lambda self, types, out: None)


def events_from_afar_that_no_record_holds(patch):
    patch.setattr(told.Forwarded, "outlasts", False)


def hosts_that_no_record_holds(patch):
    patch.setattr(told.HostInterested, "outlasts", False)


def a_break_that_is_not_told_further(patch):
    gone = Linking._gone

    def silent(self, origin, peer):
        say_all, self._say_all = self._say_all, lambda but, body: None
        try:
            gone(self, origin, peer)
        finally:
            self._say_all = say_all

    patch.setattr(Linking, "_gone", silent)


PLANTED = {
    frames_before_the_journal: 0,
    a_gap_that_is_passed_over: 0,
    claims_that_are_taken_while_a_question_is_open: 128,
    positions_told_before_they_are_stored: 0,
    events_kept_for_the_foremost_host_alone: 0,
    events_kept_that_no_snapshot_holds: 0,
    positions_that_no_snapshot_holds: 0,
    a_promise_that_goes_too_far: 0,
    origins_that_nobody_waits_for: 0,
    frames_of_an_earlier_session: 0,
    claims_over_what_was_missed: 0,
    ways_that_outlast_their_session: 0,
    operators_that_are_not_said_anew: 0,
    events_from_afar_that_no_record_holds: 0,
    hosts_that_no_record_holds: 0,
    a_break_that_is_not_told_further: 0,
}


def found_from(first):
    """The first seed at which a check of a run tells of a mistake."""
    for seed in range(first, SEEDS):
        try:
            scenario.run(seed)
        except RunFailedError as error:
            command = f"python -m simulation --kind network --seed {seed}"
            assert command in str(error)
            assert isinstance(error.__cause__, AssertionError | CheckFailedError)
            return seed
    raise AssertionError(f"not found within {SEEDS} seeds")


@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert found_from(PLANTED[plant]) == PLANTED[plant]


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found_from_the_first_seed_on(plant, monkeypatch):
    plant(monkeypatch)
    assert found_from(0) < SEEDS
