"""What brokers tell each other of their links, as values and as bytes.

Owns `LinkState` and its form on the wire. Must not know who told it. Invariant: what was decoded is
within limits, and its links are sorted, each once.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from broker.network.overlay.limits import TopologyLimits

NAME_CHARS_MAX = 64
COST_MAX = 1_000_000


class LinkState(Struct, frozen=True, array_like=True, gc=False):
    """The links of one broker as it saw them: neighbours with the cost of each.

    A later `epoch`, then a higher `seq`, is newer; of the same, `forgotten` is: somebody has said
    that the broker will not come back. `run` is of the broker's process, a later one's is greater,
    and `disk` is the first life of its disk; 0: it does not say.
    """

    origin: str
    epoch: int
    seq: int
    links: tuple[tuple[str, int], ...] = ()
    forgotten: bool = False
    run: int = 0
    disk: int = 0

    @property
    def version(self) -> tuple[int, int, bool, int]:
        """By which of two states of one broker the newer is found."""
        # *Forgotten* outdoes the state that it forgets, and is outdone by the next word of the
        # broker itself: so one that comes back after all is known again without anybody's doing.
        return (self.epoch, self.seq, self.forgotten, self.run)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[LinkState])


def encode(states: list[LinkState]) -> bytes:
    """The bytes of several."""
    return _encoder.encode(states)


def decode(data: bytes, limits: TopologyLimits) -> list[LinkState]:
    """The states; ValueError with a sentence where they are none or too large."""
    try:
        states = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("links of brokers that cannot be understood") from None
    for state in states:
        _check(state, limits)
    return states


def _check(state: LinkState, limits: TopologyLimits) -> None:
    names = [name for name, _ in state.links]
    for name in (state.origin, *names):
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise ValueError("a broker's name that no broker can have")
    # Sorted and each once, or refused: equal states are equal bytes, so that two brokers that
    # know the same flood nothing on.
    if names != sorted(set(names)) or state.origin in names:
        raise ValueError(f'links of "{state.origin}" that are out of order, doubled or to itself')
    if not all(0 < cost <= COST_MAX for _, cost in state.links):
        raise ValueError(f'a link of "{state.origin}" with a cost that none can have')
    if len(names) > limits.links_max:
        raise ValueError(f'{len(names)} links of "{state.origin}", at most {limits.links_max}')
    if min(state.epoch, state.seq, state.run, state.disk) < 0:
        raise ValueError(f'links of "{state.origin}" with an impossible number')
