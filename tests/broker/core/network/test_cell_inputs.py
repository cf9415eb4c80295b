"""What a cell takes in: what is counted of it, and what an origin may forget."""

from types import SimpleNamespace

import msgspec
import pytest

from broker.core.cells.cell_inputs import EventInputs, FoldedInputs
from broker.network.frames import told
from broker.network.host.upstream import Upstream
from broker.network.placement.cell_view import rows_of
from broker.network.placement.snapshot_pace import Saver, Saving

LIFE = 7


class Header:
    """What a header keeps of origins, and which windows are split."""

    def __init__(self):
        self.complete, self.raw, self.asked_anew = {}, [], {}
        self.windows = SimpleNamespace(types=("Temp",), keys=("task",), ids=1)
        self.gathered = SimpleNamespace(held=lambda: {"b": 3})

    def safe(self, origin):
        return self.complete.get(origin)

    def split(self):
        return self.windows

    def is_raw(self, origin):
        return origin in self.raw

    def doubted(self, origin):
        return self.asked_anew.get(origin)

    def complete_ms(self):
        return 9_000


def scene(kind):
    source = SimpleNamespace(text="the text")
    network = SimpleNamespace(
        upstream={name: Upstream() for name in ("a", "b", "c")},
        header=Header(),
        catalogue=SimpleNamespace(subscriptions={("x", "Hot"): None}),
        source_of=lambda _: source,
    )
    network.upstream["a"].begin(LIFE, 10)
    network.upstream["b"].begin(LIFE, 20)  # and nothing was heard of c
    counts = {}
    return kind("home/1", network, counts, 0, 0), network, counts


def forwarded(origin, *types):
    events = msgspec.msgpack.encode([{"type": name} for name in types])
    positions = list(range(1, len(types) + 1))
    return told.Forwarded(origin, LIFE, 0, len(types), positions, events, {})


def saver(**positions):
    """Return one whose home has stored a snapshot of these positions."""
    kept = Saver({}, 0)
    places = {name: (LIFE, position) for name, position in positions.items()}
    kept.save(Saving(1, 0, places, b""), 0)
    kept.done(1)
    return kept


def test_events_are_counted_by_origin_and_type():
    inputs, _, counts = scene(EventInputs)
    inputs.came(forwarded("a", "Temp", "Wind", "Temp"))
    inputs.came(forwarded("b", "Temp"))
    assert {place: load.events for place, load in counts.items()} == {
        ("a", "Temp"): 2,
        ("a", "Wind"): 1,
        ("b", "Temp"): 1,
    }
    assert inputs.saver.came_bytes > 0


def test_of_events_an_origin_may_forget_all_that_was_heard():
    inputs, _, _ = scene(EventInputs)
    assert inputs.positions() == {"a": (LIFE, 10), "b": (LIFE, 20)}
    assert inputs.held() == {}
    assert inputs.question("home/1", "a", 1, {"Temp": {}}) is None
    assert inputs.status() == {}


def test_of_what_is_folded_it_may_forget_what_is_complete():
    inputs, network, _ = scene(FoldedInputs)
    network.header.complete = {"b": 15}
    assert inputs.positions() == {"b": (LIFE, 15)}
    assert inputs.held() == {"b": 3}


@pytest.mark.parametrize(
    ("via", "stored", "rows"),
    [
        ({"a": "n", "b": "n"}, {}, [("a", LIFE, 10), ("b", LIFE, 20)]),
        ({"b": "n"}, {}, [("b", LIFE, 20)]),
        ({"a": "n", "b": "n"}, {"a": 10, "b": 4}, [("b", LIFE, 20)]),
    ],
)
def test_an_origin_in_reach_is_told_once_how_far_its_home_has_stored(via, stored, rows):
    inputs, _, _ = scene(EventInputs)
    inputs.saver = saver(a=10, b=20)
    assert inputs.unstored(via, stored) == rows


def test_no_origin_is_told_of_what_its_home_has_not_stored():
    inputs, _, _ = scene(EventInputs)
    inputs.saver = Saver({}, 0)
    assert inputs.unstored({"a": "n"}, {}) == []


def test_a_cell_that_splits_windows_asks_for_nothing_before_it_begins():
    assert scene(EventInputs)[0].begun
    assert not scene(FoldedInputs)[0].begun


def test_an_origin_is_asked_for_types_that_its_home_knows_of():
    inputs, _, _ = scene(EventInputs)
    assert not inputs.may_ask("a", ("Temp",))
    assert inputs.origins.waiting == {"a": ("Temp",)}
    assert inputs.origins.note({"a": ("Temp",)}) == ["a"]
    assert inputs.may_ask("a", ("Temp",))
    inputs.begun = False
    assert not inputs.may_ask("a", ("Temp",))


def test_an_origin_is_asked_to_fold_what_is_needed_of_it():
    inputs, network, _ = scene(FoldedInputs)
    assert inputs.changed()
    assert not inputs.changed()
    assert inputs.question("home/1", "a", 1, {}) is None
    fold = inputs.question("home/1", "a", 1, {"Temp": {}})
    assert (fold.host, fold.position, fold.again) == ("home/1", 10, False)
    network.header.asked_anew["a"] = 4
    fold = inputs.question("home/1", "a", 2, {"Temp": {}})
    assert (fold.position, fold.again) == (4, True)
    network.header.windows = None
    assert inputs.changed()
    assert inputs.question("home/1", "a", 3, {"Temp": {}}) is None


def test_rows_are_counted_as_rows_of_the_types_that_are_split():
    inputs, _, counts = scene(FoldedInputs)
    rows = told.Folded("a", LIFE, 0, 5, b"rows", [], b"", {})
    inputs.changed()
    inputs.came(rows)
    assert list(counts) == [("a", rows_of(("Temp",), "home/1"))]
