"""What the HTTP face asks of a broker.

Owns this interface and the shapes that cross it. Must not know how a broker answers. Invariant:
every method but `follow`'s iteration answers at once, from what is in memory.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol, TypedDict

from broker.core.messages import Done
from broker.http.events.parts import EventPart
from broker.http.fan import Follower
from broker.metrics.ledger import MetricsLedger


class DiagnosticReply(TypedDict, total=False):
    """One thing that is wrong with a specification; `line` and `column` count from 1.

    Of events: `line` is that of the body, or `event` the place in its array.
    """

    code: str
    message: str
    line: int
    column: int
    hint: str
    seq: int
    event: int


class RequestReply(TypedDict, total=False):
    """The answer to a submission or a cancellation; `ok` is always there."""

    ok: bool
    subscriptions: Sequence[str]
    home: str
    definitions: Sequence[str]
    state: str
    accepted: int
    errors: Sequence[DiagnosticReply]


class FunctionsFacade(Protocol):
    """The user functions of the network; the answers come with their status."""

    async def give(self, name: str, data: bytes, giver: str) -> tuple[int, Mapping[str, Any]]:
        """Take a file of functions; answered once it is in the journal."""

    async def remove(self, name: str, giver: str) -> tuple[int, Mapping[str, Any]]:
        """Take a file away everywhere; answered as for one that is given."""

    async def listing(self) -> Mapping[str, Any]:
        """Return all files in force, and what each broker makes of them."""


class BrokerFacade(Protocol):
    """A running broker as the HTTP face sees it."""

    @property
    def functions(self) -> FunctionsFacade:
        """Return the user functions of the network."""

    def healthy(self) -> bool:
        """Tell whether the broker's loop turns and nothing has failed beyond repair."""

    def ready(self) -> Sequence[str]:
        """Return what is still missing before clients are served; empty where nothing is."""

    def ledger(self) -> MetricsLedger:
        """The counters as they stand."""

    def subscriptions(self, user: str | None) -> Sequence[Mapping[str, Any]]:
        """Those of which `user` may know.

        Each with `subscription`, `subscriber`, `actor`, `seq`, `state` and `results`.
        """

    async def network_subscriptions(self, user: str | None) -> Mapping[str, Any]:
        """Return `subscriptions` of all brokers, each with its `home`, and the `unreached`."""

    def status(self) -> Mapping[str, Any]:
        """Return what a person wants to know of this broker, as JSON."""

    async def network_status(self) -> Mapping[str, Any]:
        """Return in short how all `brokers` are, and the `unreached`."""

    async def publish(
        self, parts: Sequence[EventPart], user: str | None
    ) -> tuple[int, RequestReply]:
        """Publish events as MQTT does; the status and the answer, once they are in the journal."""

    async def submit(self, text: str, client: str, user: str | None) -> RequestReply:
        """Checks a specification and installs all of it or nothing."""

    async def preview(self, text: str, client: str, user: str | None) -> RequestReply:
        """Tell what `submit` would change, or why it would refuse; nothing is changed."""

    async def cancel(self, name: str, client: str, user: str | None) -> RequestReply:
        """Ends a subscription."""

    async def end(
        self, name: str, client: str, user: str | None, done: Done, *, home: str
    ) -> RequestReply:
        """End or resume a subscription at `home`; "": at any broker that can be reached."""

    async def resume(self, name: str, client: str, user: str | None) -> RequestReply:
        """Begins a suspended subscription anew."""

    def forget(self, broker: str) -> bool:
        """Has nobody wait for another broker any more; False where none of that name is known."""

    async def take_over(self, home: str, client: str, *, is_forced: bool) -> RequestReply:
        """Take over a home of which this broker has a copy."""

    def network(self) -> Mapping[str, Any] | None:
        """The network as this broker sees it, and its links; None where it has none."""

    def plan(self) -> Mapping[str, Any] | None:
        """Which task runs where in the network and why; None where no coordinator decides that."""

    def drain(self, *, drained: bool) -> bool:
        """Has all tasks go elsewhere, or lets them come again; False where nobody could decide."""

    async def reload(self) -> Mapping[str, Any]:
        """Take up rights, certificates and secrets again; `ok` false: nothing was changed."""

    async def invite(self, address: str, *, trusted: bool) -> tuple[int, Mapping[str, Any]]:
        """Make a code by which a broker may join; the status and the answer."""

    async def join(self, body: bytes) -> tuple[int, Mapping[str, Any]]:
        """Answer a broker that comes with a code; the status and the answer."""

    def backup(self) -> AsyncGenerator[bytes, None] | None:
        """A copy of what is kept on disk, as a tar; None where nothing is kept.

        Raises BackupError and OSError when it is read.
        """

    def follow(self, subscription: str | None, user: str | None) -> Follower:
        """The results from now on that `user` may see, of one subscription or of all.

        Raises FollowersFullError where too many follow already.
        """
