"""Both mergers give each window the groups of its panes; one of them in steps of even size."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from broker.engine.window.panes import AtOnce, Steady

MERGES_EACH = 6  # a pane that comes: three; one that goes: two; a window: one


@dataclass(frozen=True)
class Heap:
    """What a pane has of a group: in place of a partial, the panes that it is made of."""

    panes: tuple[int, ...]
    merges: list[int] = field(compare=False)

    def merged(self, others):
        self.merges[0] += len(others)
        return Heap(tuple(sorted(self.panes + sum([one.panes for one in others], ()))), self.merges)


def windows(present, range_panes):
    """For each window, its first pane and those of the panes there that it has."""
    for first in range(min(present) - range_panes + 1, max(present) + 1):
        inside = [pane for pane in present if first <= pane < first + range_panes]
        if inside:
            yield first, inside


def panes_of(keys_by_pane, merges):
    return {
        pane: {key: Heap((pane,), merges) for key in keys} for pane, keys in keys_by_pane.items()
    }


def asked(merger, groups, first, inside):
    low = merger.wants_from(first)
    return merger.merged(first, [(pane, groups[pane]) for pane in inside if pane >= low])


PANES = st.dictionaries(
    st.integers(0, 120), st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=60
)


@given(PANES, st.integers(2, 40), st.sampled_from([AtOnce, Steady]))
def test_a_window_has_the_groups_of_its_panes(keys_by_pane, range_panes, kind):
    groups = panes_of(keys_by_pane, [0])
    merger = kind()
    for first, inside in windows(sorted(groups), range_panes):
        found = asked(merger, groups, first, inside)
        expected = {}
        for pane in inside:
            for key in keys_by_pane[pane]:
                expected.setdefault(key, []).append(pane)
        assert {key: list(one.panes) for key, one in found.items()} == expected
    assert groups == panes_of(keys_by_pane, [0]), "panes are not changed"


@given(PANES, st.integers(2, 40))
def test_no_window_merges_more_than_a_few_times(keys_by_pane, range_panes):
    """Whereas all panes are merged anew now and then where two stacks are turned."""
    merges = [0]
    groups = panes_of({pane: {"a"} for pane in keys_by_pane}, merges)
    merger = Steady()
    gone = 0
    for first, inside in windows(sorted(groups), range_panes):
        came = sum(pane >= merger.wants_from(first) for pane in inside)
        merges[0] = 0
        asked(merger, groups, first, inside)
        left = sum(pane < first for pane in groups) - gone
        gone += left
        assert merges[0] <= 3 * came + 2 * left + 1 <= MERGES_EACH
