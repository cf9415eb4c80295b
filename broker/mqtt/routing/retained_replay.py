"""Retained messages that new subscriptions are still to get, found step by step.

Owns the subscriptions that wait for theirs and the place in the tree. Must not know connections or
queues. Invariant: a step costs the same whatever is retained, so that whoever asks for steps
decides how much is done at a time; a subscription waits at most once.
"""

from collections.abc import Iterator

from broker.mqtt.codec.topics import TopicTree
from broker.mqtt.routing.message import Message, Replay

_NOTHING = Replay(0, (), no_local=False)


class Replays:
    """Of one session. `replay` is how the message of the last step is wanted.

    `finished` is the filter of which the last step found that there is no more, or empty.
    """

    __slots__ = ("_filter", "_kept", "_pending", "_retained", "_walk", "finished", "replay")

    def __init__(self, retained: TopicTree[Message]) -> None:
        self.replay = _NOTHING
        self.finished = ""
        self._retained = retained
        self._pending: dict[str, Replay] = {}  # by topic filter
        self._walk: Iterator[Message | None] | None = None
        self._filter = ""  # of the walk
        self._kept = ""  # the topic of a message that was found and has to wait

    def __bool__(self) -> bool:
        """Tell whether there may be something to come."""
        return bool(self._pending or self._walk is not None)

    def put(self, topic_filter: str, replay: Replay) -> None:
        """Have what is retained under the filter found once more."""
        self._pending[topic_filter] = replay

    def remove(self, topic_filter: str) -> None:
        """The subscription is gone."""
        self._pending.pop(topic_filter, None)
        if self._walk is not None and self._filter == topic_filter:
            self._walk, self._kept = None, ""

    def rewind(self) -> None:
        """The client has gone in the middle: it gets all of that subscription when it is back."""
        if self._walk is not None:
            self._pending = {self._filter: self.replay, **self._pending}
            self._walk, self._kept = None, ""

    def clear(self) -> None:
        """Nobody will get anything."""
        self._pending.clear()
        self._walk, self._kept = None, ""

    def step(self) -> Message | None:
        """The message that the next step has found, as it stands now, if it found one."""
        self.finished = ""
        if self._kept:
            topic, self._kept = self._kept, ""
            return self._retained.get(topic)
        if self._walk is None:
            self._filter = next(iter(self._pending))
            self.replay = self._pending.pop(self._filter)
            self._walk = self._retained.walk(self._filter)
        for message in self._walk:
            return message
        self._walk = None
        self.finished = self._filter
        return None

    def filters(self) -> list[str]:
        """The subscriptions that wait for theirs."""
        return [*([self._filter] if self._walk is not None else []), *self._pending]

    def keep(self, topic: str) -> None:
        """Keep what the last step has found; the next step finds it again."""
        self._kept = topic
