"""What every task agent is, and what it puts out.

Owns the agent's door and the result of a subscription. Must not know how an agent detects or where
results go. Invariant: an agent's output depends on its inputs and watermarks alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from broker.engine.event.event import Event, Head, Order

# A leaf is an atom of the detect, numbered from 0 in the order of the text.
LeafEvents = tuple[int, Sequence[Event]]

# What watermarks start from and end at: "nothing known yet" and "nothing more will come".
# Beyond every time in milliseconds, and so far within 64 bits that adding a duration stays there:
# infinities would be floats in a snapshot of integers.
WATERMARK_NONE = -(2**62)
WATERMARK_END = 2**62


class Result(Protocol):
    """One occurrence that a subscription reports; its id is made only when it is asked for."""

    start: int
    end: int
    occurrence: Any  # what is reported; see occurrence

    @property
    def head(self) -> Head:
        """Return what nearly always decides among results: the beginning of `order`."""

    @property
    def order(self) -> Order:
        """Return what decides among results, beginning with end and start."""

    @property
    def subscription(self) -> str:
        """The subscription's name."""

    @property
    def place(self) -> int:
        """The subscription's place in its file."""

    def to_dict(self) -> dict[str, Any]:
        """The result as other programs meet it (without `detected_at`)."""


class Agent(Protocol):
    """One case of one task: bounded state between batches of events.

    `feed` takes the new events of each leaf, in no promised order, and the watermark of the
    agent's inputs: every event still to come ends after it. It returns what became known, in
    order: events of a definition's type, or results of a subscription.
    """

    waits: bool  # whether it may report later than it is fed; if not, next_due is None for ever

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """Take events and the watermark; return what became known."""

    def watermark_out(self, watermark: int) -> int:
        """Below or at which end nothing more will come out, given the inputs' watermark."""

    def next_due(self) -> int | None:
        """The least watermark at which `feed` without events could report; None if never."""

    def held(self) -> int:
        """Count the events (or partial results of events) that it holds."""

    def dropped(self) -> dict[str, int]:
        """Count what it dropped, by reason."""

    def state(self) -> Any:
        """Plain, versioned data (None, bool, int, float, str, bytes, list, dict)."""

    def restore(self, state: Any) -> None:
        """Take up such a state, made by an agent of the same task and case."""
