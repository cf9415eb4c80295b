"""Mistakes in how windows are split are found, each within 200 seeds.

`make test` tries a few that show at once, `make long` all.
"""

import pytest

from broker.core.network.folding import Folding
from broker.core.networked import header
from broker.core.networked.header import WindowHeader
from broker.engine.window.partials import Apart
from broker.network.host.gathered import Gathered
from simulation.network import split
from tests.simulation.planted import found_from

pytestmark = pytest.mark.timeout(600)


def sources_at_two_brokers_that_nobody_minds(patch):
    patch.setattr(Gathered, "sharing", lambda *_, **__: [])


def rows_that_stay_beside_the_events_sent_again(patch):
    patch.setattr(Apart, "drop", lambda *_: 0)


def rows_that_take_the_place_of_earlier_ones(patch):
    def take(self, maker, pane, key, partial):
        groups = self._panes.setdefault(pane, {}).setdefault(maker, {})
        new = key not in groups
        groups[key] = partial
        return new

    patch.setattr(Apart, "take", take)


def events_that_are_forgotten_too_soon(patch):
    patch.setattr(Gathered, "safe", lambda self, maker, position: position)


def time_that_goes_on_while_a_broker_is_doubted(patch):
    doubt = Gathered.doubt

    def hasty(self, maker, position):
        doubt(self, maker, position)
        self.later = self.doubted.pop(maker)

    patch.setattr(Gathered, "doubt", hasty)


def promises_that_go_before_rows(patch):
    sent = Folding.sent

    def hasty(self, me, life, **how):
        rows = self.folder.harvest
        if not how and not self.question.raw and self._promised:
            self.folder.harvest = lambda: ([], {})
        try:
            return sent(self, me, life, **how)
        finally:
            self.folder.harvest = rows

    patch.setattr(Folding, "sent", hasty)


def rows_that_no_snapshot_remembers(patch):
    patch.setattr(Apart, "restore", lambda *_: None)


def a_memory_that_no_snapshot_has(patch):
    patch.setattr(WindowHeader, "state", lambda _: {})


def lives_that_begin_with_nothing(patch):
    patch.setattr(header, "_live_on", lambda *_: None)


AT_ONCE = (
    lives_that_begin_with_nothing,
    sources_at_two_brokers_that_nobody_minds,
    rows_that_take_the_place_of_earlier_ones,
    rows_that_stay_beside_the_events_sent_again,
)
LATER = (
    events_that_are_forgotten_too_soon,
    time_that_goes_on_while_a_broker_is_doubted,
    promises_that_go_before_rows,
    rows_that_no_snapshot_remembers,
    a_memory_that_no_snapshot_has,
)


@pytest.mark.long
@pytest.mark.parametrize("plant", AT_ONCE, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found_at_once(plant, monkeypatch):
    plant(monkeypatch)
    found_from(split.run, "split", seeds=10)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("plant", [*AT_ONCE, *LATER], ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    found_from(split.run, "split")
