"""What edge nodes and devices announced when they came, and whether that still holds.

Owns the meaning of aliases and types between a birth and its death. Must not know bytes, mappings
or events. Invariant: an alias is resolved only by the last birth of the very edge node or device
that uses it, and only while no message of the edge node is known to be missed since; all births
together are at most `WEIGHT_MAX` entries, whatever is published.

Sequence numbers run through all messages of an edge node, those of its devices included. Where one
is skipped a birth may have been missed, and what is remembered may give a value to the wrong
metric: it is forgotten until births come again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

WEIGHT_MAX = 32_768  # some 4 MB: fifty edge nodes with three hundred metrics each
SEQ_COUNT = 256  # they run from 0 to 255 and begin anew

NODE = ""  # in the place of a device: the edge node itself


class Metric(NamedTuple):
    """A metric as a birth announces it."""

    name: str
    datatype: int | None


class Birth:
    """The announcement of a birth: metrics by alias, and the types of those that are named."""

    __slots__ = ("by_alias", "by_name")

    def __init__(self, said: Iterable[tuple[str, int | None, int | None]] = ()) -> None:
        """`said`: name, alias and type of each metric."""
        self.by_alias: dict[int, Metric] = {}
        self.by_name: dict[str, int | None] = {}
        for name, alias, datatype in said:
            self.by_name[name] = datatype
            if alias is not None:
                self.by_alias[alias] = Metric(name, datatype)

    @property
    def weight(self) -> int:
        """Count the entries that it takes."""
        return 1 + len(self.by_alias) + len(self.by_name)


class EdgeNode:
    """An edge node: its birth and those of its devices.

    A device that was heard without a birth has None: it is known to be there, and nothing else.
    `missed` says which number came after which where one is missing.
    """

    __slots__ = ("asked_s", "births", "counted", "missed", "seq", "session", "weight")

    def __init__(self) -> None:
        self.births: dict[str, Birth | None] = {}
        self.seq: int | None = None
        self.session: int | None = None  # the bdSeq of its birth
        self.missed: tuple[int, int] | None = None
        self.weight = 1
        self.counted = 0  # of the weight, in that of all
        self.asked_s: float | None = None  # when it was asked for its births

    def put(self, device: str, birth: Birth | None) -> None:
        """Remember a birth in the place of the earlier one; None: there is such a device."""
        if birth is None and device in self.births:
            return
        self.drop(device)
        self.births[device] = birth
        self.weight += 1 if birth is None else birth.weight

    def drop(self, device: str) -> None:
        """Forget that there is such a device."""
        if device in self.births:
            before = self.births.pop(device)
            self.weight -= 1 if before is None else before.weight

    def distrust(self) -> None:
        """Forget what births said, and still know who is there."""
        self.births = dict.fromkeys(self.births)
        self.weight = 1 + len(self.births)

    def follow(self, seq: int | None, *, again: bool) -> None:
        """A message came; `again`: it may have come before."""
        if seq is None or again or seq == self.seq:
            return
        if self.seq is not None and seq != (self.seq + 1) % SEQ_COUNT:
            self.missed = (self.seq, seq)
            self.distrust()
        self.seq = seq


class Births:
    """All edge nodes that were heard of, by group and edge node; the one heard last is the last."""

    def __init__(self, weight_max: int = WEIGHT_MAX) -> None:
        self._edges: OrderedDict[tuple[str, str], EdgeNode] = OrderedDict()
        self._weight_max = weight_max
        self.weight = 0

    def __len__(self) -> int:
        return len(self._edges)

    @contextmanager
    def changing(self, group: str, name: str) -> Iterator[EdgeNode]:
        """The edge node to be changed, new where it is not known; there is room again afterwards.

        Those silent for longest are forgotten, and where one alone is too large, that one.
        """
        key = group, name
        edge = self._edges.setdefault(key, EdgeNode())
        self._edges.move_to_end(key)
        try:
            yield edge
        finally:
            self.weight += edge.weight - edge.counted
            edge.counted = edge.weight
            while self.weight > self._weight_max:
                _, oldest = self._edges.popitem(last=False)
                self.weight -= oldest.weight

    def known(self, group: str, name: str) -> EdgeNode | None:
        """The edge node, where it is known."""
        return self._edges.get((group, name))

    def distrust(self, group: str, name: str) -> None:
        """A message of an edge node came that could not be read, and may have been a birth."""
        if (group, name) in self._edges:
            with self.changing(group, name) as edge:
                edge.distrust()

    def distrust_all(self) -> None:
        """Nothing was heard for a while: of every edge node anything may have been missed."""
        for edge in self._edges.values():
            edge.distrust()
            edge.seq = edge.missed = edge.session = None
            edge.counted = edge.weight
        self.weight = sum(edge.weight for edge in self._edges.values())

    def forget(self, group: str, name: str) -> None:
        """An edge node is gone."""
        edge = self._edges.pop((group, name), None)
        if edge is not None:
            self.weight -= edge.weight
