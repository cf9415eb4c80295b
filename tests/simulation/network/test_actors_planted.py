"""Mistakes in what follows an actor are found, each by a run that then tells of it."""

import pytest
from msgspec.structs import replace

from broker.core.exchange import listening
from broker.core.networked.actor_delivery import ActorDelivery
from broker.network.actors.copies import Copies
from broker.network.actors.roaming import Roaming
from tests.simulation.network.test_actors import check, check_killed

SEEDS = 40


def a_copy_that_nobody_hears_is_dropped(patch):
    patch.setattr(ActorDelivery, "unheard", lambda *_: None)


def nothing_waits_for_who_has_just_left(patch):
    patch.setattr(Roaming, "hold", lambda *_: False)


def what_waits_is_kept_when_it_is_given(patch):
    came = Roaming.came

    def keeping(self, actors, now):
        kept = self._held.copy()
        found = came(self, actors, now)
        self._held = kept
        return found

    patch.setattr(Roaming, "came", keeping)


def nobody_remembers_what_was_published(patch):
    patch.setattr(Roaming, "published", lambda *_: False)
    patch.setattr(Roaming, "first", lambda *_: True)


def each_of_several_sees_to_what_nobody_heard(patch):
    add = Copies.add

    def seeing(self, to, actor, payload, asks, now):
        return add(self, to, actor, payload, asks or (), now)

    patch.setattr(Copies, "add", seeing)


def none_of_several_sees_to_what_nobody_heard(patch):
    add = Copies.add

    def blind(self, to, actor, payload, asks, now):
        return add(self, to, actor, payload, None if asks else asks, now)

    patch.setattr(Copies, "add", blind)


def an_actor_that_is_back_is_as_if_it_had_stayed(patch):
    patch.setattr(
        ActorDelivery, "listens", lambda self, actor, *_, **__: self._since.get(actor) is not None
    )


def copies_that_are_not_sent_again(patch):
    patch.setattr(listening.ActorNews, "found", lambda self, origin: None)


def copies_that_a_restart_forgets(patch):
    patch.setattr(Copies, "restore", lambda *_: None)


def copies_that_claim_that_nothing_came_before(patch):
    def deaf(self, peer, one):
        copied_here(self, peer, replace(one, floor=one.serial))

    copied_here = listening.ActorNews.copied
    patch.setattr(listening.ActorNews, "copied", deaf)


PLANTED = (
    a_copy_that_nobody_hears_is_dropped,
    nothing_waits_for_who_has_just_left,
    what_waits_is_kept_when_it_is_given,
    nobody_remembers_what_was_published,
    each_of_several_sees_to_what_nobody_heard,
    none_of_several_sees_to_what_nobody_heard,
    an_actor_that_is_back_is_as_if_it_had_stayed,
    copies_that_are_not_sent_again,
    copies_that_claim_that_nothing_came_before,
    copies_that_a_restart_forgets,
)


def runs():
    for seed in range(SEEDS):
        check(seed, 0)
        check(seed, 12)
        check_killed(seed)


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="assert"):
        runs()
