"""Neighbours keep what a home has cancelled, and hand back what its disk does not tell of."""

from types import SimpleNamespace

import pytest

from broker.network.replication.cancellations import (
    CANCELLATIONS_MAX,
    HOMES_MAX,
    CancellationExchange,
    CancellationLog,
    SubscriptionsCancelled,
)


class Broker:
    """A log with its exchange; what is said to a peer lands in its `heard`."""

    def __init__(self, name, installed=()):
        self.cancellations = CancellationLog(name)
        self.installed = {(one.subscriber, one.name): one for one in installed}
        self.said = []
        log, installed = self.cancellations, self.installed
        self.exchange = CancellationExchange(log, installed, self._say, log.handle, self.end)

    def _say(self, peer, message):
        self.said.append((peer, message))

    def end(self, one):
        del self.installed[one.subscriber, one.name]
        self.cancellations.cancel(one)

    def bring(self, other):
        """Bring all that was said to another."""
        said, self.said = self.said, []
        for _, message in said:
            other.exchange.hear(self.cancellations.me, message)


def generation(name, since=1, seq=1):
    return SimpleNamespace(subscriber="anna", name=name, seq=seq, since=since)


def test_a_home_that_went_back_forgets_what_it_had_cancelled_and_nothing_else():
    hall = Broker("hall")
    home = Broker("home", [generation("A"), generation("B")])
    home.exchange.begin("hall")
    home.exchange.begin("shed", keeps=False)
    home.end(generation("A"))
    home.exchange.spread(["hall", "shed"])
    home.bring(hall)
    rewound = Broker("home", [generation("A"), generation("B")])
    rewound.exchange.begin("hall")
    rewound.bring(hall)
    hall.bring(rewound)
    assert list(rewound.installed) == [("anna", "B")]
    rewound.exchange.begin("hall")  # and then both know the same
    rewound.bring(hall)
    assert hall.said == []


def test_a_subscription_that_was_submitted_since_is_another():
    hall, home = Broker("hall"), Broker("home", [generation("A", since=2)])
    hall.cancellations.handle(SubscriptionsCancelled("home", (("anna", "A", 1, 1),)))
    home.exchange.begin("hall")
    home.bring(hall)
    hall.bring(home)
    assert list(home.installed) == [("anna", "A")]


def test_a_cancellation_alone_is_answered_by_nothing():
    """Else each one would bring back all."""
    hall, home = Broker("hall"), Broker("home", [generation("A")])
    hall.cancellations.handle(SubscriptionsCancelled("home", (("anna", "B", 1, 1),)))
    home.exchange.begin("hall")
    home.said.clear()
    home.end(generation("A"))
    home.exchange.spread(["hall"])
    home.bring(hall)
    assert len(hall.cancellations.of("home")) == 2
    assert hall.said == []
    home.exchange.spread(["hall"])
    assert home.said == []


def test_nobody_tells_of_a_third():
    with pytest.raises(ValueError, match="hall tells of cancellations of roof"):
        Broker("home").exchange.hear("hall", SubscriptionsCancelled("roof", ()))


def test_what_is_kept_is_bounded_and_outlasts_the_process():
    log = CancellationLog("hall")
    for number in range(CANCELLATIONS_MAX + 5):
        log.cancel(generation(f"S{number}"))
    assert [row[1] for row in log.of("hall")] == [
        f"S{number}" for number in range(5, CANCELLATIONS_MAX + 5)
    ]
    for number in range(HOMES_MAX + 5):
        log.handle(SubscriptionsCancelled(f"b{number}", (("anna", "A", 1, 1),)))
    assert log.of("hall")
    assert log.of("b0") == ()
    again = CancellationLog("hall")
    again.restore(log.state())
    assert again.state() == log.state()
    again.forget(f"b{HOMES_MAX}")
    assert again.of(f"b{HOMES_MAX}") == ()
