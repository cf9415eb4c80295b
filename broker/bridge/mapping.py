"""From messages on foreign topics to events, as the configuration maps them.

Owns which mappings a message has and what each makes of it. Must not judge events: the core does.
Invariant: whatever a payload holds, a mapping makes of it one event (of Sparkplug B one for each
time), or none, or a refusal with its reason; and of a message for whose outcome a publisher waits,
the last that is made carries that.

A fault of ours on a message costs that message: whoever sent others with it must not hear of it.

A message is never judged as a whole: where several mappings take it, one may make an event of it
and another refuse it. Refusals come first, as they are not written to the journal; that keeps the
order of events, so the last of them tells that all are on disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from broker import logs
from broker.bridge.mapped_payload import PayloadReader, UnmappableError
from broker.config.mappings import filled, heard_by, left_out, level_name, settled
from broker.core.messages import Payload, SourceWithdrawn, TopicRefused
from broker.errors import StartError
from broker.mqtt.codec.topics import matches

if TYPE_CHECKING:
    from typing import TypeAlias

    from broker.bridge.sparkplug.events import MetricReader
    from broker.bridge.sparkplug.mapping import Said, Sparkplug
    from broker.config.mappings import MappingSection
    from broker.engine.limits import Limits
    from broker.mqtt.application import InboundMessage

    Made: TypeAlias = Payload | TopicRefused | SourceWithdrawn

TOPICS_CACHED = 4_096  # a home has some hundred; beyond: the memory begins anew
CACHED_CHARS_MAX = 512  # of a topic that is remembered; MQTT allows 65,535
NEEDS_PROTOBUF = (
    'a mapping with payload = "sparkplug-b" needs protobuf: install headwater with its extra, '
    "headwater[sparkplug]"
)
NOTHING = b"[]"  # no event, and still an answer to who waits

logger = logging.getLogger(__name__)


class Mapper:
    """One mapping."""

    def __init__(self, name: str, section: MappingSection) -> None:
        whole = settled(section)
        self.name = name
        self.filter = heard_by(whole)
        self.retained = whole.retained
        self._without = left_out(whole)
        self.rebirth = whole.rebirth
        self.reader = PayloadReader(whole)
        self.metrics: MetricReader | None = None  # what reads Sparkplug B instead
        if whole.payload == "sparkplug-b":
            from broker.bridge.sparkplug.events import MetricReader

            self.metrics = MetricReader(whole)
        self.failed = False  # a fault of ours was told
        self._levels = whole.topic.split("/")
        self._type, self._source, self._location = whole.type, whole.source, whole.location

    def place(self, topic: str) -> MappedTopic | None:
        """Read what the topic says, or None where it is not the mapping's.

        No wildcard or name stands for a level that is empty or begins with `$`: these are what a
        convention says about itself, as Homie's `$state`.
        """
        if any(matches(pattern, topic) for pattern in self._without):
            return None
        levels = topic.split("/")
        names: dict[str, str] = {}
        for index, wanted in enumerate(self._levels):
            if wanted == "#":
                return self._said(names)
            if index >= len(levels):
                return None
            level, name = levels[index], level_name(wanted)
            if name is None and wanted != "+":
                if wanted != level:
                    return None
            elif not level or level.startswith("$"):
                return None
            elif name is not None:
                names[name] = level
        return self._said(names) if len(levels) == len(self._levels) else None

    def _said(self, names: Mapping[str, str]) -> MappedTopic:
        return MappedTopic(
            self,
            filled(self._type, names),
            filled(self._source, names),
            filled(self._location, names),
        )


class MappedTopic:
    """A topic as one mapping sees it."""

    def __init__(self, mapper: Mapper, type_name: str, source: str, location: str) -> None:
        self.mapper = mapper
        self.type_name = type_name
        self.source = source
        self.location = location


class Mappings:
    """All mappings, for the broker's own face or for a joined server.

    `advertised` tells whether a source said itself what it is; `publish` sends a message to where
    messages come from. Both are set by who has them.
    """

    def __init__(
        self, sections: Mapping[str, MappingSection], limits: Limits, *, joined: bool = False
    ) -> None:
        """Raises StartError where payloads that are mapped need a library that is missing."""
        self.advertised: Callable[[str], bool] = lambda _source: False
        self.publish: Callable[[str, bytes], None] = lambda _topic, _payload: None
        self._mappers = [Mapper(name, section) for name, section in sections.items()]
        self._payload_bytes_max = limits.payload_bytes_max
        self._joined = joined
        self._places: dict[str, tuple[MappedTopic, ...]] = {}
        self._sparkplug = _sparkplug(self._mappers, limits)

    def filters(self) -> list[str]:
        """Give the filters to subscribe to at a joined server: each that no other takes in."""
        widest: list[str] = []
        for topic_filter in dict.fromkeys(mapper.filter for mapper in self._mappers):
            if not any(_covers(other, topic_filter) for other in widest):
                widest = [other for other in widest if not _covers(topic_filter, other)] + [
                    topic_filter
                ]
        return widest

    def read(self, message: InboundMessage) -> list[Made]:
        """Make of a message what the core is to be told.

        One without payload makes no event: it takes back what was retained. What a joined server
        had retained before is old, and passed over unless the mapping wants it. A client that
        publishes a message to be retained publishes it now.
        """
        made: list[Made] = []
        if message.payload:
            stored = self._joined and message.retain
            places = self._places_of(message.topic)
            wanted = [place for place in places if not stored or place.mapper.retained]
            heard = None
            if self._sparkplug is not None and (wanted or not stored):
                heard = self._sparkplug.hear(message)
            outcomes = (self._made(place, message, heard) for place in wanted)
            made = [outcome for outcome in outcomes if outcome is not None]
            if self._sparkplug is not None and heard is not None:
                made += self._gone(heard)
                if any(place.mapper.rebirth for place in wanted):
                    self._ask(self._sparkplug, heard)
        return _with_token(made, message)

    def missed(self) -> None:
        """Messages may have been missed, as the connection to their server was lost."""
        if self._sparkplug is not None:
            self._sparkplug.missed()

    def _places_of(self, topic: str) -> tuple[MappedTopic, ...]:
        places = self._places.get(topic)
        if places is None:
            if len(self._places) >= TOPICS_CACHED:
                self._places.clear()
            candidates = (mapper.place(topic) for mapper in self._mappers)
            places = tuple(place for place in candidates if place is not None)
            if len(topic) <= CACHED_CHARS_MAX:
                self._places[topic] = places
        return places

    def _gone(self, said: Said) -> list[Made]:
        """The withdrawal of the sources of who is gone.

        One that was advertised stays: what it said of itself holds when it is back.
        """
        places = (place for topic in said.dead_topics() for place in self._places_of(topic))
        sources = dict.fromkeys(
            place.source for place in places if place.mapper.metrics is not None
        )
        return [SourceWithdrawn(source) for source in sources if not self.advertised(source)]

    def _ask(self, sparkplug: Sparkplug, said: Said) -> None:
        command = sparkplug.command(said, time.time_ns() // 1_000_000)
        if command is not None:
            logs.tell("info", "births_asked_for", topic=command[0], reason=str(said.error))
            self.publish(*command)

    def _made(self, place: MappedTopic, message: InboundMessage, said: Said | None) -> Made | None:
        mapper = place.mapper
        try:
            if len(message.payload) > self._payload_bytes_max:
                problem = f"found {len(message.payload)} bytes, at most {self._payload_bytes_max}"
                raise UnmappableError(problem)
            if mapper.metrics is None:
                data = mapper.reader.event(message.payload, place.location)
            else:
                readings = said.readings() if said is not None else []
                data = mapper.metrics.events(readings, place.location)
        except UnmappableError as error:
            problem = f"[mappings.{mapper.name}] {error}"
            return TopicRefused(message.topic, message.payload, None, mapper.name, problem)
        except Exception as error:
            if not mapper.failed:
                mapper.failed = True
                logger.exception("a fault on a message of [mappings.%s]", mapper.name)
            problem = f"[mappings.{mapper.name}] a fault of the broker: {type(error).__name__}"
            return TopicRefused(message.topic, message.payload, None, mapper.name, problem)
        return Payload(place.type_name, place.source, data) if data is not None else None


def _sparkplug(mappers: list[Mapper], limits: Limits) -> Sparkplug | None:
    """Make what hears Sparkplug B for the mappings; None where none wants it."""
    filters = [mapper.filter for mapper in mappers if mapper.metrics is not None]
    if not filters:
        return None
    from broker.bridge.sparkplug.mapping import Sparkplug
    from broker.bridge.sparkplug.wire import NoProtobufError

    try:
        return Sparkplug(filters, limits.payload_bytes_max)
    except NoProtobufError:
        raise StartError(NEEDS_PROTOBUF) from None


def _with_token(made: list[Made], message: InboundMessage) -> list[Made]:
    """The same, refusals first, with the last as that of which the publisher hears."""
    token = message.token
    if token is None:
        return made
    if not made:
        return [Payload("", "", NOTHING, token)]
    made.sort(key=lambda one: not isinstance(one, TopicRefused))
    made[-1] = replace(made[-1], token=token)
    return made


def _covers(wide: str, narrow: str) -> bool:
    """Tell whether one filter takes all that another takes."""
    return (wide.endswith("#") or not narrow.endswith("#")) and matches(wide, narrow)
