"""Timed Petri nets as Jin et al. draw them (sections 5.1 and 5.3), token by token.

Owns an interpreter of any such net and the three of figures 3 to 5. Must not know the engine.

A place may give its tokens a life cycle: a token younger than its beginning cannot fire, one older
than its end is eliminated; [0, 0] is "fire or eliminate". Beginnings and ends are included, as the
language includes them. A transition takes tokens, the oldest first, where enough can fire; an
inhibitor arc wants none in its place that can fire, and `absent` none at all; a reset arc empties
its place. Transitions fire in the order in which they are given until none can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Token = tuple[int, str]  # time in ms, name
ALL = 0  # the weight of an arc that takes every token


@dataclass(frozen=True)
class Transition:
    """Its arcs: place → weight of those that it takes; the others by their places."""

    takes: dict[str, int]
    gives: tuple[str, ...]
    reads: tuple[str, ...] = ()
    inhibits: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    resets: tuple[str, ...] = ()


@dataclass
class Marked:
    """A token: when it came into its place, and the names of what it is made of."""

    since: int
    names: list[str]


@dataclass
class Net:
    """Life cycles of the places that have one; transitions, the urgent ones first."""

    lives: dict[str, tuple[int, int]]
    transitions: Sequence[Transition]
    marking: dict[str, list[Marked]] = field(default_factory=dict)
    now: int = 0

    def put(self, time: int, place: str, name: str) -> None:
        """A token from outside comes into a place."""
        self.wait(time)
        self._place(place).append(Marked(time, [name]))
        self._settle()
        for other, (_, end) in self.lives.items():
            if end == 0:
                self._place(other).clear()

    def wait(self, time: int) -> None:
        """Let time go by: tokens whose life has ended are eliminated, one instant after it."""
        while True:
            ends = [
                token.since + end + 1
                for place, (_, end) in self.lives.items()
                for token in self._place(place)
            ]
            if not ends or min(ends) > time:
                break
            self.now = min(ends)
            for place, (_, end) in self.lives.items():
                tokens = self._place(place)
                tokens[:] = [token for token in tokens if self.now - token.since <= end]
            self._settle()
        self.now = time

    def names(self, place: str) -> list[list[str]]:
        """What lies in a place."""
        return [token.names for token in self._place(place)]

    def _place(self, place: str) -> list[Marked]:
        return self.marking.setdefault(place, [])

    def _ripe(self, place: str) -> list[Marked]:
        begin, end = self.lives.get(place, (0, self.now))
        return [t for t in self._place(place) if begin <= self.now - t.since <= end]

    def _enabled(self, one: Transition) -> bool:
        return (
            all(len(self._ripe(place)) >= max(weight, 1) for place, weight in one.takes.items())
            and all(self._ripe(place) for place in one.reads)
            and not any(self._ripe(place) for place in one.inhibits)
            and not any(self._place(place) for place in one.absent)
        )

    def _settle(self) -> None:
        while enabled := [one for one in self.transitions if self._enabled(one)]:
            self._fire(enabled[0])

    def _fire(self, one: Transition) -> None:
        taken: list[Marked] = []
        for place, weight in one.takes.items():
            ripe = self._ripe(place)
            some = ripe if weight == ALL else ripe[:weight]
            tokens = self._place(place)
            tokens[:] = [token for token in tokens if token not in some]
            taken += some
        for place in one.resets:
            self._place(place).clear()
        taken.sort(key=lambda token: token.since)
        names = [name for token in taken for name in token.names]
        for place in one.gives:
            self._place(place).append(Marked(self.now, names))


def seq_net(a_ms: int, b_ms: int) -> Net:
    """Figure 3: what comes into buffer 2 fires with what is ripe in buffer 1, or is eliminated."""
    fire = Transition({"buffer 1": 1, "buffer 2": 1}, ("initial",))
    return Net({"buffer 1": (a_ms, b_ms), "buffer 2": (0, 0)}, [fire])


def nloop_net(count: int) -> Net:
    """Figure 4: an arc of weight `count` takes as many tokens at once."""
    return Net({}, [Transition({"buffer 1": count}, ("initial",))])


def tloop_net(a_ms: int, b_ms: int) -> Net:
    """Figure 5: buffer 2 holds the last token; unless one finds it ripe, all of buffer 1 fires.

    A token that comes too early finds none that can fire there; that none comes in time shows when
    the last one has been eliminated.
    """
    close = Transition(
        {"buffer 1": ALL}, ("initial",), reads=("arrived",), inhibits=("buffer 2",),
        resets=("buffer 2",),
    )  # fmt: skip
    join = Transition({"arrived": 1}, ("buffer 1", "buffer 2"), resets=("buffer 2",))
    silence = Transition({"buffer 1": ALL}, ("initial",), absent=("buffer 2",))
    return Net({"arrived": (0, 0), "buffer 2": (a_ms, b_ms)}, [close, join, silence])


def pairs_net(b_ms: int, count: int) -> Net:
    """Example 1: what a SEQ fires goes into the buffer of an NLoop."""
    pair = Transition({"buffer 1": 1, "buffer 2": 1}, ("pairs",))
    loop = Transition({"pairs": count}, ("initial",))
    return Net({"buffer 1": (1, b_ms), "buffer 2": (0, 0)}, [pair, loop])


def fired(net: Net, tokens: Sequence[tuple[int, str, str]]) -> list[list[str]]:
    """What lies in the initial place when tokens (time, name, place) have come, and then none."""
    for time, name, place in tokens:
        net.put(time, place, name)
    net.wait(net.now + 10**9)
    return net.names("initial")


def seq(tokens: Sequence[tuple[int, str, int]], a_ms: int, b_ms: int) -> list[list[str]]:
    """What figure 3 fires; the third part of a token is its buffer, 1 or 2."""
    return fired(seq_net(a_ms, b_ms), [(at, name, f"buffer {to}") for at, name, to in tokens])


def nloop(tokens: Sequence[Token], count: int) -> list[list[str]]:
    """What figure 4 fires."""
    return fired(nloop_net(count), [(at, name, "buffer 1") for at, name in tokens])


def tloop(tokens: Sequence[Token], a_ms: int, b_ms: int) -> list[list[str]]:
    """What figure 5 fires."""
    return fired(tloop_net(a_ms, b_ms), [(at, name, "arrived") for at, name in tokens])
