"""What a broker's core is told: things that have happened, in the past tense.

Owns the types that `Broker.handle` takes. Must not know who tells. Invariant: a message is whole:
nothing else is asked for while it is handled. Events come in batches; all others are rare.

`token` and `reply_to` are the teller's own: the core hands them back in effects and never looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from broker.engine.event.event import Event
from broker.engine.ingest.registry import Format
from broker.network.frames.told import Told
from broker.network.functions.files import FunctionFile

if TYPE_CHECKING:
    from language import Checked

DecodedEvents: TypeAlias = tuple[Event, ...] | None
Done: TypeAlias = Literal["cancelled", "resumed"]  # what a request about a subscription does


class Payload(Struct, frozen=True):
    """One payload as it came on a topic: an event or an array of them.

    `type_name` and `source` are what the topic says. `token` None: nobody waits for an answer.
    `explain`: who waits can take the reason of a refusal.
    """

    type_name: str
    source: str
    data: bytes
    token: Any = None
    format: Format = "json"
    explain: bool = False


class EventsReceived(Struct, frozen=True):
    """Payloads in the order in which they came."""

    payloads: tuple[Payload, ...]


class TopicRefused(Struct, frozen=True):
    """A client published below the prefix where nothing is to be published.

    Or, with `found`, what a mapping of that name cannot make an event of.
    """

    topic: str
    data: bytes
    token: Any = None
    mapping: str = ""
    found: str = ""


class SourceAdvertised(Struct, frozen=True):
    """A source said what it is; `data` is the advertisement as JSON."""

    source: str
    data: bytes
    token: Any = None


class SourceWithdrawn(Struct, frozen=True):
    """A source said that it sends no more."""

    source: str
    token: Any = None


class ActorsListening(Struct, frozen=True):
    """There are some actors more at a broker so many hops away, and some are gone.

    At this broker itself `hops` is 0. `anew`: those that came are all that there are. An actor is
    where a client subscribes to its topic. `version` is the other broker's, which counts changes.
    """

    broker: str
    hops: int
    came: tuple[str, ...]
    gone: tuple[str, ...] = ()
    anew: bool = False
    version: int = 0


class SpecificationSubmitted(Struct, frozen=True):
    """A client wants a specification installed.

    `client` is who asks; `proven`: by a password or certificate, so that the name can be relied
    on. `checked` is what `language.check_text` said of the text where somebody asked it before.
    `cells` is into how many cells its subscriptions may be parted, where they run as cells;
    `alone`: also those that need the same inputs; `split`: whether windows of these are split.
    `keeps_state`: tasks of a text that is replaced hand on what they hold; `revises`: those in
    cells, too; `apart`: a definition that runs is shared only where a new one would hold the same.
    Records of a journal that lack these are of a version that began anew, and shared what ran.
    `only`: of the text's subscriptions these alone are meant; the others stay as they are.
    """

    client: str
    request: str
    text: str
    reply_to: Any = None
    token: Any = None
    proven: bool = False
    checked: Checked | None = None
    cells: int = 1
    split: bool = False
    keeps_state: bool = True
    alone: bool = True
    revises: bool = True
    only: tuple[tuple[str, str], ...] | None = None
    apart: bool = True


class CancelRequested(Struct, frozen=True):
    """A client wants a subscription ended; `client` and `proven` as for a submission."""

    done: ClassVar[Done] = "cancelled"

    client: str
    request: str
    name: str
    reply_to: Any = None
    token: Any = None
    proven: bool = False


class ResumeRequested(CancelRequested, frozen=True):
    """A client wants a suspended subscription to begin anew.

    `apart`: it alone; a record of an earlier version is of one that began definitions anew for all.
    """

    done: ClassVar[Done] = "resumed"

    apart: bool = True


class RequestRefused(Struct, frozen=True):
    """A request that could not even be read, or not be taken now; `code` is one of `refusals`."""

    client: str
    request: str
    code: str
    reply_to: Any = None
    token: Any = None


class FunctionsChanged(Struct, frozen=True):
    """Files of user functions came or went, given here or at another broker.

    `reply_to`: who waits until the journal has them; None: nobody does.
    """

    files: tuple[FunctionFile, ...]
    reply_to: Any = None


Request: TypeAlias = SpecificationSubmitted | CancelRequested | RequestRefused


class NetworkTold(Struct, frozen=True):
    """Something of the network of brokers that outlasts the process; see `broker.core.network`.

    `events` are those that `what` holds, where they are decoded already; a record has their bytes.
    """

    what: Told
    events: DecodedEvents = None


class Started(Struct, frozen=True):
    """The broker serves its clients from now on."""


class Stopped(Struct, frozen=True):
    """The broker is about to end, and promises to be back in so many ms; 0: it promises nothing."""

    back_within_ms: int = 0


class Woken(Struct, frozen=True):
    """Time has passed; due at `Broker.next_wake`."""


class ClockSet(Struct, frozen=True):
    """The time of day is `ahead_ms` ahead of `now`; see `broker.driver.runner`.

    What is stamped on arrival, or judged as too far in the future, goes by the time of day, and all
    else by `now`. A process begins with 0.
    """

    ahead_ms: int


class Settling(Struct, frozen=True):
    """A reader of the log goes by event time: how far is each subscription settled?"""


Message: TypeAlias = (
    EventsReceived
    | TopicRefused
    | SourceAdvertised
    | SourceWithdrawn
    | ActorsListening
    | SpecificationSubmitted
    | CancelRequested
    | ResumeRequested
    | FunctionsChanged
    | RequestRefused
    | NetworkTold
    | Started
    | Stopped
    | Woken
    | ClockSet
    | Settling
)
