"""Windows whose events are folded at several places, against a naive recomputation of the whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Detected, Event
from broker.engine.limits import Limits
from broker.engine.window.agent import WindowAgent
from broker.engine.window.constituents import IDS_MAX
from broker.engine.window.splitting import KEY_CHARS, Folder, may_split, split_of
from broker.network.frames import fold_rows
from language import check_text
from tests.broker.core.test_windows_generated import SHAPES, WINDOWS, WITHOUT_VALUES
from tests.broker.core.window_support import (
    CLASSES,
    Defined,
    again,
    agent_of,
    alike,
    expected,
    task_of,
    told,
    traces,
)

FEW = settings(max_examples=(settings.default or settings()).max_examples // 2)
PLAIN = [name for name, (leaves, _) in SHAPES.items() if not any(one.distinct for one in leaves)]
IN_PANES = [one for one in WINDOWS if one[1] is not None]
PLAIN_ONE = SHAPES["one operand, no group"]


class Split:
    """One window split over some makers, all that it is fed with, and what it makes."""

    def __init__(self, defined: Defined, makers: int, ids: int) -> None:
        self.defined = defined
        self.task = task_of(defined.text)
        self.ids = ids
        self.agent = self._agent()
        self.folders = [self._folder() for _ in range(makers)]
        self.folded: list[list[Event]] = [[] for _ in range(makers)]  # not sent yet
        self.sent: list[list[Event]] = [[] for _ in range(makers)]
        self.made: list[Detected] = []
        self.watermark = WATERMARK_NONE

    def _agent(self) -> WindowAgent:
        return agent_of(self.defined.text)

    def _folder(self) -> Folder:
        return Folder([self.task], self.ids, Limits())

    def fold(self, maker: int, events: list[Event]) -> None:
        """Events enter where this maker is."""
        self.folders[maker].take(events)
        self.folded[maker] += events

    def send(self, maker: int) -> None:
        """All that is folded there is merged."""
        rows, _ = fold_rows.unpacked(fold_rows.packed(*self.folders[maker].harvest()))
        panes = dict(rows).get((self.task.key[:KEY_CHARS], 0), [])
        late, _ = self.agent.panes().take_rows(str(maker), panes)
        assert not late
        self.sent[maker] += self.folded[maker]
        self.folded[maker] = []

    def take_back(self, maker: int) -> None:
        """What came of a maker for panes that are not complete is folded and sent again."""
        split = split_of({self.task.key: self.task})
        assert split is not None
        settled = None
        if self.watermark > WATERMARK_NONE:
            settled = split.grid.pane_of(self.watermark + 1)
        self.agent.panes().drop_rows(str(maker), settled)
        self.folders[maker] = self._folder()
        lost = [
            one
            for one in self.sent[maker] + self.folded[maker]
            if settled is None or split.grid.pane_of(one.end) >= settled
        ]
        self.sent[maker] = [one for one in self.sent[maker] if one not in lost]
        self.folded[maker] = []
        self.fold(maker, lost)

    def reach(self, watermark: int) -> None:
        """No event comes any more that ends at or before this."""
        self.watermark = max(self.watermark, watermark)
        self.made += self.agent.feed([], self.watermark)

    def snapshot(self) -> None:
        """What merges is made anew from its state."""
        self.agent = again(self.agent, self._agent)


def split_run(data: st.DataObject, defined: Defined, events: list[Event]) -> Split:
    """The events at some makers, in some order, sent now and then, as watermarks allow."""
    makers = data.draw(st.integers(1, 3), "makers")
    done = Split(defined, makers, data.draw(st.sampled_from([1, IDS_MAX])))
    order = list(data.draw(st.permutations(events)))
    while order:
        size = data.draw(st.integers(1, 4))
        some, order = order[:size], order[size:]
        maker = data.draw(st.integers(0, makers - 1))
        done.fold(maker, some)
        for action in data.draw(st.lists(st.sampled_from(["send", "back", "save", "time"]))):
            at = data.draw(st.integers(0, makers - 1))
            if action == "send":
                done.send(at)
            elif action == "back":
                done.take_back(at)
            elif action == "save":
                done.snapshot()
            else:
                waiting = [*order, *(one for some in done.folded for one in some)]
                least = min([one.end for one in waiting], default=60)
                done.reach(least - data.draw(st.integers(1, 9)))
    for at in range(makers):
        done.send(at)
    done.reach(WATERMARK_END)
    return done


@pytest.mark.parametrize("shape", PLAIN)
@FEW
@given(data=st.data())
def test_split_windows_are_what_a_naive_recomputation_gives(
    shape: str, data: st.DataObject
) -> None:
    """However events are parted, folded, sent, taken back and sent again."""
    leaves, group_by = SHAPES[shape]
    defined = Defined(*data.draw(st.sampled_from(IN_PANES)), leaves, group_by, WITHOUT_VALUES)
    events = data.draw(traces())
    done = split_run(data, defined, events)
    wanted = [(window, *rest) for window, _, *rest in expected(defined, events)]
    found = told(defined, done.made)
    if done.ids == 1:  # the first id of each is there, and what it was closed with
        wanted = [(one[0], one[1][:1], *one[2:]) for one in wanted]
        found = [(one[0], one[1][:1], *one[2:]) for one in found]
    assert alike(found) == alike(wanted)


@FEW
@given(data=st.data())
def test_ids_and_order_are_those_of_one_place(data: st.DataObject) -> None:
    leaves, group_by = SHAPES[data.draw(st.sampled_from(PLAIN))]
    defined = Defined(*data.draw(st.sampled_from(IN_PANES)), leaves, group_by, WITHOUT_VALUES)
    events = data.draw(traces())
    one = Split(defined, 1, IDS_MAX)
    one.fold(0, events)
    one.send(0)
    one.reach(WATERMARK_END)
    whole = agent_of(defined.text)
    batch = [
        (at, own)
        for at, leaf in enumerate(defined.leaves)
        if (own := [e for e in events if e.event_type == leaf.event_type and leaf.own(e)])
    ]
    assert said(whole.feed(batch, WATERMARK_END)) == said(one.made)


def said(made: list[Detected]) -> list[Any]:
    return [(one.id, one.order, one.certainty, one.uncertainty) for one in made]


def test_the_first_of_many_ids_alone_are_kept() -> None:
    defined = Defined("every 1000 ms", 1000, None, *PLAIN_ONE, WITHOUT_VALUES)
    events = [CLASSES["A"](id=f"e{at:03}", start=at, end=at, a_x=1.0) for at in range(300)]
    done = Split(defined, 2, IDS_MAX)
    done.fold(0, events[::2])
    done.fold(1, events[1::2])
    done.send(0)
    done.send(1)
    done.reach(WATERMARK_END)
    assert list(done.made[0].ids) == [one.id for one in events[:IDS_MAX]]


def test_what_comes_behind_a_window_is_counted_and_not_merged() -> None:
    defined = Defined("every 10 ms", 10, None, *PLAIN_ONE, WITHOUT_VALUES)
    done = Split(defined, 1, 1)
    done.fold(0, [CLASSES["A"](id="a", start=5, end=5)])
    done.send(0)
    done.reach(9)
    assert len(done.made) == 1
    late = Split(defined, 1, 1)
    late.fold(0, [CLASSES["A"](id="b", start=6, end=6), CLASSES["A"](id="c", start=12, end=12)])
    rows, _ = late.folders[0].harvest()
    assert done.agent.panes().take_rows("0", rows[0][1]) == (1, 0)
    assert done.agent.dropped()["window_closed"] == 1
    done.reach(19)
    assert [list(one.ids) for one in done.made] == [["a"], ["c"]]


def test_a_pane_that_is_complete_is_kept_where_later_ones_are_taken_back() -> None:
    defined = Defined("every 10 ms range 14 ms", 10, 14, *PLAIN_ONE, WITHOUT_VALUES)
    done = Split(defined, 1, 1)
    done.fold(0, [CLASSES["A"](id="a", start=2, end=2), CLASSES["A"](id="b", start=8, end=8)])
    done.send(0)
    done.reach(7)  # up to 6 all is there, and no window is closed
    done.take_back(0)
    done.send(0)
    done.reach(WATERMARK_END)
    assert [(one.tie[2], list(one.ids), one.start) for one in done.made] == [
        (1, ["a"], 9),
        (2, ["b"], 19),
    ]


# --- which windows ----------------------------------------------------------------------------

TEXT = """
event A(x: float, i: int, g: text)
event B(x: float, i: int, g: text)
table T from "t.csv" key g
{defined}
subscription S seq 1 from tester to out
{detect}
"""
MEAN = "define W(v) aggr {window}\ndetect {what}\nassign v = {value}{more}"


def split_of_text(defined: str, detect: str) -> Any:
    checked = check_text(
        TEXT.format(defined=defined, detect=detect).replace('table T from "t.csv" key g\n', "")
    )
    assert checked.specification is not None, checked.report()
    graph = checked.specification.graph
    return split_of({key: graph.tasks[key] for key in (*graph.active(graph.roots), *graph.roots)})


def mean(
    window: str = "every 5 s", what: str = "A", value: str = "Avg(A.x)", more: str = ""
) -> str:
    return MEAN.format(window=window, what=what, value=value, more=more)


@pytest.mark.parametrize(
    ("defined", "detect", "ids"),
    [
        (mean(), "detect W", 1),
        (mean(), "detect W(v > 3) as w\ngroup by source", 1),
        (mean("every 5 s range 12 s"), "detect W", 1),
        (mean(what="outer A and B(x > 2)", value="Count(A) - Count(B)"), "detect W", 1),
        (mean(more="\ngroup by source"), "detect W", 1),
        (mean(), "detect W as a then[..1 min] W as b", IDS_MAX),
        (mean(), "detect W\nat most 1 per 10 s", IDS_MAX),
        (
            mean() + "\ndefine V(n) aggr every 1 min\ndetect W\nassign n = First(W.v)",
            "detect V",
            IDS_MAX,
        ),
    ],
)
def test_what_is_split(defined: str, detect: str, ids: int) -> None:
    split = split_of_text(defined, detect)
    assert split is not None
    assert (len(split.keys), split.ids) == (1, ids)


@pytest.mark.parametrize(
    ("defined", "detect"),
    [
        (mean("range 5 s"), "detect W"),
        (mean("session 5 s"), "detect W"),
        (mean('every 1 day in "Europe/Zurich"'), "detect W"),
        (mean("every 2 h"), "detect W"),
        (mean(value="Median(A.x)"), "detect W"),
        (mean(value="Count(A)", what="distinct(g) A"), "detect W"),
        (mean(value="Avg(A.x), timestamp = Min(A.start)"), "detect W"),
        (mean(), "detect W and A within 5 s"),
        (mean(), "detect A(x > 2)"),
        (
            mean() + "\ndefine V(v) aggr every 7 s\ndetect B\nassign v = Avg(B.x)",
            "detect W and V within 1 min",
        ),
    ],
)
def test_what_is_not_split(defined: str, detect: str) -> None:
    named = defined.replace("W(v)", "W(v, timestamp)") if "timestamp" in defined else defined
    assert split_of_text(named, detect) is None


def test_a_text_that_others_cannot_read_is_not_split() -> None:
    text = TEXT.format(defined=mean(what="A(T[A.g].k = 1)"), detect="detect W")
    tables = {"t.csv": "g,k\nu,1\n"}
    checked = check_text(text, tables=lambda name: tables[name])
    assert checked.specification is None or not may_split(text, checked.specification.graph.tasks)
    plain = text.replace("T[A.g].k = 1", "x > 1").replace('table T from "t.csv" key g\n', "")
    known = check_text(plain).demand().graph.tasks
    assert may_split(plain, known)
    assert not may_split(plain + "# " + "x" * 70_000, known)


# --- rows as bytes ----------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\x80\x80", b"\x01", b"x\x9cabc", b"\x81\xa4rows\x01"])
def test_bytes_that_are_no_rows_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"rows|state"):
        fold_rows.unpacked(data)


def test_digests_that_are_cut_off_are_refused() -> None:
    whole = fold_rows.packed([], {3: {b"12345"}})
    assert fold_rows.unpacked(whole) == ([], {3: {b"12345"}})
    with pytest.raises(ValueError, match="cut off"):
        fold_rows.unpacked(whole.replace(b"\xc4\x0512345", b"\xc4\x041234"))
