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
from broker.remote.home_copies import HomeCopies


class StandInState(msgspec.Struct):
    """The stand-in of a home, and how far it follows.

    `behind` counts the changes that it is not known to have. `lease_ms` 0: it takes over by a
    person's word alone; else `leased` tells if the home may give out results now.
    """

    broker: str
    state: str
    behind: int
    lease_ms: int = 0
    leased: bool = True


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
    stand_in: StandInState | None = None


class NetworkStates:
    """The states of a network's brokers; `state` returns this one's own."""

    def __init__(self, state: Callable[[], BrokerState]) -> None:
        self._state = state
        self._calls: CallDesk | None = None
        self._copies: HomeCopies | None = None

    def link(self, calls: CallDesk, copies: HomeCopies) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls, self._copies = calls, copies
        calls.answers["state"] = self._asked

    async def listing(self) -> Reply:
        """Return the state of this broker and those of all others, by name, and who gave none.

        Of these also who stands in for them, or has taken them over.
        """
        others = [] if self._calls is None else self._calls.others()
        replies = await asyncio.gather(*[self._state_of(name) for name in others])
        states = [reply for reply in replies if isinstance(reply, BrokerState)]
        by_name = sorted(states, key=lambda state: state.broker)
        unreached = [reply for reply in replies if not isinstance(reply, BrokerState)]
        away = [row["broker"] for row in unreached]
        remarks = await self._copies.remarks(away) if self._copies is not None else {}
        return {
            "brokers": [msgspec.to_builtins(state) for state in (self._state(), *by_name)],
            "unreached": [row | remarks.get(row["broker"], {}) for row in unreached],
        }

    async def _state_of(self, broker: str) -> BrokerState | Reply:
        assert self._calls is not None
        try:
            reply = await self._calls.read(broker, "state")
            state = msgspec.convert(reply, BrokerState)
        except UnansweredError as error:
            return {"broker": broker, "reason": str(error)}
        except msgspec.ValidationError:
            return {"broker": broker, "reason": "it does not say how it is; is its version older?"}
        state.broker = broker  # a name is of whoever was asked, whatever the answer says
        return state

    async def _asked(self, _question: Mapping[str, Any]) -> Reply:
        state: Reply = msgspec.to_builtins(self._state())
        return state
