"""How all brokers of a network are, asked of one of them.

Owns what a broker says of itself in short, and the collecting of it. Must not know how that is
found out, nor how brokers are asked. Invariant: each known broker is in the answer, by its state or
among those that gave none.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from broker.remote.desk import CallDesk, Reply, UnansweredError


class BrokerState(msgspec.Struct):
    """A broker in one row; times in ms. `missing`: why it takes no events; empty: it takes them."""

    broker: str
    version: str
    missing: list[str]
    since: int
    now: int
    subscriptions: int
    suspended: int
    held: int
    received: int
    memory_bytes: int | None = None


class NetworkStates:
    """The states of a network's brokers; `state` returns this one's own."""

    def __init__(self, state: Callable[[], BrokerState]) -> None:
        self._state = state
        self._calls: CallDesk | None = None

    def link(self, calls: CallDesk) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls = calls
        calls.answers["state"] = self._asked

    async def listing(self) -> Reply:
        """Return the state of this broker and those of all others, by name, and who gave none."""
        others = [] if self._calls is None else self._calls.others()
        replies = await asyncio.gather(*[self._state_of(name) for name in others])
        states = [reply for reply in replies if isinstance(reply, BrokerState)]
        by_name = sorted(states, key=lambda state: state.broker)
        return {
            "brokers": [msgspec.structs.asdict(state) for state in (self._state(), *by_name)],
            "unreached": [reply for reply in replies if not isinstance(reply, BrokerState)],
        }

    async def _state_of(self, broker: str) -> BrokerState | Reply:
        assert self._calls is not None
        try:
            reply = await self._calls.ask(broker, "state")
            state = msgspec.convert(reply, BrokerState)
        except UnansweredError as error:
            return {"broker": broker, "reason": str(error)}
        except msgspec.ValidationError:
            return {"broker": broker, "reason": "it does not say how it is; is its version older?"}
        state.broker = broker  # a name is of whoever was asked, whatever the answer says
        return state

    async def _asked(self, _question: Mapping[str, Any]) -> Reply:
        return msgspec.structs.asdict(self._state())
