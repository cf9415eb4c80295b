"""Which operators of one link need not be asked for, because others ask for all that they want.

Owns covered and uncovered operators of one side of a link, and how an operator becomes a box. Must
not know events or neighbours. Invariant: what is covered stays so as long as its coverers are
there; when one goes, all that it covered is looked at again before anybody is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.covering.boxes import ANYTHING, AXES_MAX, Box, Cuts, box_of, cuts
from broker.network.routing.covering.covering import Check, CoverIndex, Sampler

_Class = tuple[Any, ...]


class _Item(NamedTuple):
    operator: Operator  # as it was asked for
    kind: _Class  # only operators of one class can cover each other
    box: Box | None  # None: cannot be compared
    by: tuple[str, ...] | None  # None: not covered


class Covers:
    """Operators by id, each covered by others of its class or not."""

    def __init__(self, check: Check, sampler: Sampler | None = None) -> None:
        self._check = check  # for all classes
        self._sampler = sampler
        self._items: dict[str, _Item] = {}
        self._classes: dict[_Class, CoverIndex] = {}  # an index each, made when first needed
        self._covering: dict[str, dict[str, None]] = {}  # by coverer, in the order of covering

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __len__(self) -> int:
        return len(self._items)

    def covered(self, name: str) -> bool:
        """Tell whether others ask for all that this one wants."""
        return self._items[name].by is not None

    def coverers(self, name: str) -> tuple[str, ...]:
        """Return who asks for all that this one wants, together; nobody where it is not covered."""
        return self._items[name].by or ()

    def get(self, name: str) -> Operator:
        """The operator of an id."""
        return self._items[name].operator

    def uncovered(self) -> list[Operator]:
        """Those that must be asked for, in the order in which they came."""
        return [item.operator for item in self._items.values() if item.by is None]

    def add(self, operator: Operator) -> bool:
        """Take an operator; whether it is covered by those that are there."""
        if self._check is Check.NONE:
            self._items[operator.id] = _Item(operator, (), None, None)
            return False
        kind, box = box_of_operator(operator)
        by = None
        if box is not None:
            by = self._index(kind, box.axes).covered_by(box)
        self._items[operator.id] = _Item(operator, kind, box, by)
        self._settle(operator.id)
        return by is not None

    def remove(self, name: str) -> list[Operator]:
        """Let an operator go; those that are not covered without it, in the order of covering."""
        return self._recheck(self._take(name))

    def replace(self, operator: Operator) -> tuple[bool, list[Operator]]:
        """Put an operator in the place of the one with its id: as `add` and `remove` in one."""
        left = self._take(operator.id)
        covered = self.add(operator)
        return covered, self._recheck(left)

    def _index(self, kind: _Class, axes: int) -> CoverIndex:
        index = self._classes.get(kind)
        if index is None:
            index = self._classes[kind] = CoverIndex(axes, self._check, sampler=self._sampler)
        return index

    def _settle(self, name: str) -> None:
        """Note who covers an operator, or that it may cover others."""
        operator, kind, box, by = self._items[name]
        if by is not None:
            for coverer in by:
                self._covering.setdefault(coverer, {})[name] = None
        elif box is not None and all(key.exact for key in operator.keys):
            self._classes[kind].add(name, box)

    def _take(self, name: str) -> list[str]:
        """Take an operator out; those that it helped to cover."""
        item = self._items.pop(name)
        if item.by is not None:
            for coverer in item.by:
                self._covering[coverer].pop(name, None)
            return []
        index = self._classes.get(item.kind)
        if index is not None and name in index:
            index.remove(name)
            if not len(index):
                del self._classes[item.kind]
        return list(self._covering.pop(name, ()))

    def _recheck(self, names: list[str]) -> list[Operator]:
        bare = []
        for name in names:
            item = self._items.get(name)
            if item is None or item.by is None or item.box is None:
                continue
            for coverer in item.by:
                self._covering.get(coverer, {}).pop(name, None)
            by = self._index(item.kind, item.box.axes).covered_by(item.box)
            self._items[name] = item._replace(by=by)
            self._settle(name)
            if by is None:
                bare.append(item.operator)
        return bare


def box_of_operator(operator: Operator) -> tuple[_Class, Box | None]:
    """The class of an operator, and its box among those of the class.

    Each key has its own axes, those of its place included: a match may take one event from here and
    one from there, so two regions do not cover their union (the paper's algorithm 2 says that
    they do).
    """
    kind: list[Any] = [
        operator.delta_t_ms, operator.delta_l, operator.strict, operator.correlated,
        operator.since_ms is None,
    ]  # fmt: skip
    axes: list[Cuts] = []
    places = _places_fit(operator)
    for key in operator.keys:
        kind.append((*_said(key), key.name == operator.main, key.name in operator.silent))
        axes.extend(
            cuts(one.low, one.high, low_open=one.low_open, high_open=one.high_open)
            for one in key.ranges
        )
        corners = _corners(key) if places else None
        kind.append((key.region.shape, key.region.metric) if corners and key.region else key.region)
        axes.extend(corners or ())
    if operator.since_ms is not None:
        axes.append(cuts(float(operator.since_ms), None))
    if len(axes) > AXES_MAX:
        return tuple(kind), None
    return tuple(kind), box_of(axes or [ANYTHING])


def _said(key: Key) -> _Class:
    attributes = tuple(one.attribute for one in key.ranges)
    equals = tuple((name, isinstance(value, bool), value) for name, value in key.equals)
    return (key.type_name, key.source, key.location, key.optional, equals, attributes)


def _places_fit(operator: Operator) -> bool:
    """Tell whether there are axes enough for regions; else only equal regions are compared."""
    axes = sum(len(key.ranges) + 2 * (_corners(key) is not None) for key in operator.keys)
    return axes + (operator.since_ms is not None) <= AXES_MAX


def _corners(key: Key) -> tuple[Cuts, Cuts] | None:
    region = key.region
    if region is None or region.shape != "box":
        return None
    a, b, c, d = region.numbers
    return cuts(min(a, c), max(a, c)), cuts(min(b, d), max(b, d))
