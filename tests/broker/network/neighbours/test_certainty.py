"""Who needs nothing that passes here is not waited for, whatever made it so."""

from broker.network.frames.frames import Reoffer
from broker.network.neighbours.certainty import Certainty


def asking_of(origin, waits_for):
    """A host beyond `n` asks an origin, and says for whom it waits."""
    return Reoffer("host", origin, 1, 0, None, {"T": {}}, (), waits_for, None)


def test_a_host_all_of_whose_origins_are_forgotten_is_not_waited_for():
    """It would not say so again when the broker that it waits for has answered."""
    certainty = Certainty()
    certainty.asked("n", asking_of("gone", ("away",)), reachable=False)
    assert certainty.absent["n"]["host"].keys() == {"away", "gone"}
    certainty.forget("gone")
    assert not certainty.absent["n"]
    assert certainty.may_ask("n", ())


def test_a_host_that_needs_others_as_well_is_waited_for_still():
    certainty = Certainty()
    certainty.asked("n", asking_of("gone", ("away",)), reachable=True)
    certainty.asked("n", asking_of("there", ("away",)), reachable=True)
    certainty.forget("gone")
    assert certainty.absent["n"]["host"].keys() == {"away"}
