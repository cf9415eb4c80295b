"""What a home makes of those whom it asked: who takes a task up, who refuses, who is lost."""

import pytest

from broker.core.coordinator import bounds
from broker.core.coordinator.works import Work, Works

KEY = "home/1"
KNOWN = {"home": False, "near": False, "far": False}


class Home:
    """A home whose one task the rounds want at another broker."""

    def __init__(self) -> None:
        self.works = Works("home", 2_000)
        self.placed: list[str] = []
        self.now = 0
        self.is_at("home")
        self.want("far")

    def is_at(
        self, host: str, *, begins: bool = False, failed: bool = False, lost: str = ""
    ) -> None:
        """A look at where it is; nothing is known of who is lost."""
        known = [name for name in KNOWN if name != lost]
        self.works.put([Work(KEY, "S", host, begins, failed)], known, self.now)

    def want(self, broker: str) -> None:
        """The rounds want it there, and have wanted that for long enough."""
        for _ in range(2):
            self.works.want(
                {KEY: broker}, KNOWN, lambda _, there: self.placed.append(there), self.now
            )
            self.now += bounds.STEADY_MS + 10_000

    def refused(self) -> tuple[str, ...]:
        return self.works.needs()[0].not_at


@pytest.mark.parametrize("begins", [False, True])
def test_who_refuses_is_left_out_whether_its_beginning_was_seen_or_not(begins: bool) -> None:
    home = Home()
    assert home.placed == ["far"]
    if begins:
        home.is_at("far", begins=True)
    home.is_at("home", failed=True)
    assert home.refused() == ("far",)
    home.want("far")
    assert "far" not in home.placed[1:]
    home.now += bounds.REFUSALS_MS
    home.is_at("home", failed=True)
    assert home.refused() == ()
    home.want("far")
    assert home.placed[-1] == "far"


def test_who_was_lost_as_it_began_has_not_refused() -> None:
    home = Home()
    home.is_at("far", begins=True)
    home.is_at("home", failed=True, lost="far")
    assert home.refused() == ()
    home.want("far")
    assert home.placed == ["far", "far"]


def test_who_was_lost_before_anything_was_seen_of_it_has_not_refused_either() -> None:
    home = Home()
    home.is_at("home", lost="far")
    home.now += bounds.REFUSED_MS
    home.is_at("home")
    assert home.refused() == ()
    home.want("far")
    assert home.placed == ["far", "far"]


def test_who_takes_long_to_begin_is_waited_for_and_asked_once() -> None:
    home = Home()
    home.is_at("far", begins=True)
    home.now += 3 * bounds.REFUSED_MS
    home.is_at("far", begins=True)
    assert home.works.due(home.now) is None, "nothing is to be done before something is seen"
    home.want("far")
    home.is_at("far")
    assert (home.placed, home.refused()) == (["far"], ())
    home.is_at("home", failed=True)  # it had taken it up: that it fails later is another thing
    assert home.refused() == ()


def test_of_whom_nothing_is_seen_for_long_is_left_out() -> None:
    home = Home()
    home.now += bounds.REFUSED_MS
    home.is_at("home")
    assert home.refused() == ("far",)
