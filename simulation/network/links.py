"""Virtual links between brokers.

Owns what is under way between two brokers and what a fault does to it. Must not know what frames
mean. Invariant: from one fresh beginning to the next, frames arrive once and in order within their
class, control never behind events that were sent later; as `broker.network.session` has it.

A cut that is short loses nothing: what was under way, and what is sent meanwhile, arrives when it
is over. A long one, or the end of a process, loses all that had not arrived. A link that is full
refuses events, and says so to the sender alone.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Protocol

from msgspec import Struct

from broker.network.effects import SendFrame
from broker.network.frames.messages import (
    FramesReceived,
    FromNetwork,
    LinkDown,
    LinkRefused,
    LinkUp,
)
from simulation.world import World


class End(Protocol):
    """A broker at the end of a link."""

    name: str

    @property
    def alive(self) -> bool:
        """Tell whether there is a process."""

    def hear(self, message: FromNetwork) -> None:
        """Its link tells it something."""


class Load(Struct):
    """Count what went over a link in one direction."""

    frames: int = 0
    events: int = 0
    size_bytes: int = 0


class _Way:
    """One direction: what is under way, by class."""

    def __init__(self) -> None:
        self.under_way: dict[bool, deque[SendFrame]] = {True: deque(), False: deque()}
        self.arrives = {True: 0, False: 0}
        self.turn = 0  # ascends when it is stopped or goes on
        self.stalled = 0
        self.refused = 0  # so many frames more are not taken
        self.load = Load()

    def clear(self) -> int:
        """Lose all of it; how much that was."""
        self.turn += 1
        lost = sum(map(len, self.under_way.values()))
        for some in self.under_way.values():
            some.clear()
        return lost


class Link:
    """Carry frames between two brokers, over a virtual link.

    `delay_ms` is the most that a frame is under way.
    """

    def __init__(self, world: World, one: End, other: End, delay_ms: int) -> None:
        self.ends = {one.name: one, other.name: other}
        self.delay_ms = delay_ms
        self.up = False
        self.cuts = 0
        self.lost = 0
        self._ups = 0
        self._world = world
        self._cut = 0  # how many faults hold it down
        self._fresh = True
        self._ways = {one.name: _Way(), other.name: _Way()}

    def other(self, name: str) -> End:
        """The end that is not this one."""
        return next(end for known, end in self.ends.items() if known != name)

    def load(self, name: str) -> Load:
        """Return what was sent by an end."""
        return self._ways[name].load

    def waiting(self, name: str) -> list[SendFrame]:
        """Events' frames of an end that are under way, or wait while it is cut."""
        return list(self._ways[name].under_way[False])

    # --- frames ----------------------------------------------------------------------------

    def send(self, name: str, frame: SendFrame) -> None:
        """A frame leaves an end; while it is cut it waits, if all is not lost anyhow."""
        way = self._ways[name]
        if self._fresh and not self.up:
            self.lost += 1
            return
        if way.refused and not frame.control:
            way.refused -= 1
            self.lost += 1
            self._world.after(0, partial(self.ends[name].hear, LinkRefused(self.other(name).name)))
            return
        way.load.frames += 1
        way.load.events += frame.events
        way.load.size_bytes += len(frame.data)
        way.under_way[frame.control].append(frame)
        if self.up and not way.stalled:
            self._plan(name, frame.control)

    def _plan(self, name: str, control: bool) -> None:
        """Have one more frame of a class arrive."""
        way, turn = self._ways[name], self._ways[name].turn
        now = self._world.now
        at = max(way.arrives[control], now + self.takes_ms())
        way.arrives[control] = at
        if control:  # events that are sent from now on come later than this
            way.arrives[False] = max(way.arrives[False], at)
        other = self.other(name)

        def arrive() -> None:
            if turn == way.turn:
                frame = way.under_way[control].popleft()
                self.arrived(name, frame)
                other.hear(FramesReceived(name, (frame.data,)))

        self._world.at(at, arrive)

    def takes_ms(self) -> int:
        """Draw how long the next frame is under way."""
        return self._world.random.randint(0, self.delay_ms)

    def arrived(self, name: str, frame: SendFrame) -> None:
        """A frame of an end has come to the other; whoever counts that does it here."""

    def _go_on(self) -> None:
        """Let what is under way go on where it was stopped."""
        for name, way in self._ways.items():
            if self.up and not way.stalled:
                way.turn += 1
                way.arrives = {True: self._world.now, False: self._world.now}
                for control in (True, False):
                    for _ in way.under_way[control]:
                        self._plan(name, control)

    # --- faults ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Come up anew, if both ends are there."""
        if not self.up and not self._cut and all(end.alive for end in self.ends.values()):
            self.up = True
            self._ups += 1
            ups = self._ups
            fresh, self._fresh = self._fresh, False
            for name, end in self.ends.items():
                up = LinkUp(self.other(name).name, fresh)
                self._world.after(0, partial(self._hear_up, ups, end, up))
            self._go_on()

    def _hear_up(self, ups: int, end: End, message: LinkUp) -> None:
        if self.up and ups == self._ups:
            end.hear(message)

    def down(self) -> None:
        """An end is gone: all that was under way is lost."""
        self._fresh = True
        self.lost += sum(way.clear() for way in self._ways.values())
        self._tell_down()

    def cut(self, for_ms: int, *, lost: bool) -> None:
        """Cut it for so long; `lost`: it begins anew afterwards."""
        self.cuts += 1
        self._cut += 1
        if lost:
            self.down()
        else:
            self._tell_down()

        def over() -> None:
            self._cut -= 1
            self.begin()

        self._world.after(for_ms, over)

    def stall(self, name: str, for_ms: int) -> None:
        """Nothing that this end sends arrives for so long, while the other way goes on."""
        way = self._ways[name]
        way.stalled += 1
        way.turn += 1

        def over() -> None:
            way.stalled -= 1
            self._go_on()

        self._world.after(for_ms, over)

    def refuse(self, name: str, frames: int) -> None:
        """It is full: it does not take so many of the next frames of this end."""
        self._ways[name].refused = frames

    def _tell_down(self) -> None:
        if self.up:
            self.up = False
            for way in self._ways.values():
                way.turn += 1
            for name, end in self.ends.items():
                down = LinkDown(self.other(name).name)
                self._world.after(0, partial(end.hear, down))
