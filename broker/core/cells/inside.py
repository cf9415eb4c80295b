"""Cells as neighbours of the broker in which they run: sessions and frames without a link.

Owns what such a neighbour is to the sessions, the router and whatever is about to leave. Must not
know what a cell does. Invariant: what a cell sends leaves this broker behind all that the broker
was told before; the tree, and sessions with true neighbours, stay as they are when a cell comes or
goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from broker.core.effects import Effect
from broker.core.recovery.durable import DurableBroker
from broker.network.effects import SendFrame
from broker.network.frames.messages import FramesReceived
from broker.network.neighbours.sessions import FrameSender, Sessions
from broker.network.placement.cell_view import is_cell
from broker.network.routing.advertisement.messages import Send
from broker.network.routing.growing import GrowingRouter


class CellNeighbours(NamedTuple):
    """The cells in a broker; `forget` drops what one said, `receive` takes its frames."""

    durable: DurableBroker
    sender: FrameSender[Effect]
    sessions: Sessions
    router: GrowingRouter
    routed: Callable[[Sequence[Send]], None]
    forget: Callable[[str], None]
    receive: Callable[[FramesReceived], None]

    @property
    def tree(self) -> str:
        """Return the tree on which sessions stand."""
        return self.sessions.tree

    def join(self, name: str) -> None:
        """Make a cell a neighbour."""
        self.sender.inside[name] = None
        self.routed(self.router.neighbour_added(name))
        self.sender.hello(name, self.sessions.begin(name))

    def leave(self, name: str) -> None:
        """Forget a neighbour, and what was to be sent to it."""
        del self.sender.inside[name]
        self._drop(name)
        self.sessions.end(name)
        self.forget(name)
        self.routed(self.router.neighbour_removed(name))
        self._drop(name)  # what was said before it was known that it ends

    def _drop(self, name: str) -> None:
        kept = [e for e in self.sender.out if not (is_inner(e) and e.link == name)]
        self.sender.out = kept

    def frames(self) -> Iterator[tuple[str, bytes]]:
        """Iterate over what is to be sent to cells by now; it is sent with that."""
        out, self.sender.out = self.sender.out, []
        for effect in out:
            if is_inner(effect):
                yield effect.link, effect.data
            else:
                self.sender.out.append(effect)

    def hear(self, name: str, frames: tuple[bytes, ...]) -> None:
        """Take frames of a cell."""
        self.sender.behind = self.durable.number
        self.receive(FramesReceived(name, frames))
        self.sender.behind = 0

    def carry_out(self, effects: list[Effect]) -> None:
        """Have effects of a cell carried out."""
        self.sender.out += effects

    def is_sending(self) -> bool:
        """Tell whether something is to be sent to cells."""
        return any(map(is_inner, self.sender.out))


def is_inner(effect: Effect) -> TypeGuard[SendFrame]:
    """Tell whether an effect sends something to a cell."""
    return isinstance(effect, SendFrame) and is_cell(effect.link)
