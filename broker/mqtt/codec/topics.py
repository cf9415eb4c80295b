"""Topic names and filters: what is allowed, and trees that match one against the other.

Owns the checks of section 4.7 and the two trees. Must not know clients, packets or retained
messages' contents. Invariant: a match costs by the depth of the topic and what matches, not by how
many subscriptions there are; the order of matches is that of insertion at each node.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from broker.mqtt.codec.reasons import ProtocolError, Reason

K = TypeVar("K")
V = TypeVar("V")

SHARE = "$share/"


def check_topic(topic: str, levels_max: int) -> None:
    """Refuse what is no topic name (MQTT-3.3.2-2, 4.7.3-1), with TOPIC_NAME_INVALID."""
    if not topic:
        raise ProtocolError(Reason.TOPIC_NAME_INVALID, "a topic name is empty")
    if "+" in topic or "#" in topic:
        raise ProtocolError(Reason.TOPIC_NAME_INVALID, "a topic name holds a wildcard")
    if topic.count("/") >= levels_max:
        raise ProtocolError(
            Reason.TOPIC_NAME_INVALID, f"a topic name has more than {levels_max} levels"
        )


def check_filter(topic_filter: str, levels_max: int) -> None:
    """Refuse what is no topic filter (MQTT-4.7.1-1, -2, 4.7.3-1), with TOPIC_FILTER_INVALID."""
    if not topic_filter:
        raise ProtocolError(Reason.TOPIC_FILTER_INVALID, "a topic filter is empty")
    levels = topic_filter.split("/")
    if len(levels) > levels_max:
        raise ProtocolError(
            Reason.TOPIC_FILTER_INVALID, f"a topic filter has more than {levels_max} levels"
        )
    for level in levels[:-1]:
        if "#" in level or ("+" in level and level != "+"):
            raise ProtocolError(Reason.TOPIC_FILTER_INVALID, "a wildcard is not a level of its own")
    last = levels[-1]
    if len(last) > 1 and ("#" in last or "+" in last):
        raise ProtocolError(Reason.TOPIC_FILTER_INVALID, "a wildcard is not a level of its own")


def split_share(topic_filter: str) -> tuple[str, str]:
    """Group and filter of a shared subscription; the group is empty where it is none."""
    if not topic_filter.startswith(SHARE):
        return "", topic_filter
    group, _, shared_filter = topic_filter[len(SHARE) :].partition("/")
    return group, shared_filter


def check_share(topic_filter: str) -> bool:
    """Tell whether a filter that begins as a shared one names a group and a filter.

    MQTT-4.8.2-1, -2.
    """
    group, shared_filter = split_share(topic_filter)
    return bool(group and shared_filter) and "+" not in group and "#" not in group


def matches(topic_filter: str, topic: str) -> bool:
    """Tell whether the filter matches the topic; a leading wildcard never matches a `$` topic."""
    if topic.startswith("$") and topic_filter[:1] in {"+", "#"}:
        return False
    wanted = topic_filter.split("/")
    levels = topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(levels) or level not in {"+", levels[index]}:
            return False
    return len(wanted) == len(levels)


class _FilterNode(Generic[K, V]):
    __slots__ = ("beneath", "children", "here")

    def __init__(self) -> None:
        self.children: dict[str, _FilterNode[K, V]] = {}
        self.here: dict[K, V] = {}  # filters that end at this level
        self.beneath: dict[K, V] = {}  # filters that end here with "/#"


class FilterTree(Generic[K, V]):
    """Filters with, at each, values by key (a subscription by its client)."""

    def __init__(self) -> None:
        self._root: _FilterNode[K, V] = _FilterNode()
        self.size = 0

    def put(self, topic_filter: str, key: K, value: V) -> bool:
        """Set the value of `key` at this filter; whether there was none before."""
        node = self._root
        levels = topic_filter.split("/")
        table_of_hash = levels[-1] == "#"
        for level in levels[:-1] if table_of_hash else levels:
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _FilterNode()
            node = child
        table = node.beneath if table_of_hash else node.here
        new = key not in table
        table[key] = value
        self.size += new
        return new

    def remove(self, topic_filter: str, key: K) -> bool:
        """Take the value of `key` at this filter away; whether there was one."""
        path: list[tuple[_FilterNode[K, V], str]] = []
        node = self._root
        levels = topic_filter.split("/")
        table_of_hash = levels[-1] == "#"
        for level in levels[:-1] if table_of_hash else levels:
            child = node.children.get(level)
            if child is None:
                return False
            path.append((node, level))
            node = child
        table = node.beneath if table_of_hash else node.here
        if key not in table:
            return False
        del table[key]
        self.size -= 1
        while path and not (node.here or node.beneath or node.children):
            node, level = path.pop()
            del node.children[level]
        return True

    def names_below(self, topic: str) -> list[str]:
        """The filters beneath a topic that are topic names, as they hold no wildcard."""
        node = self._root
        for level in topic.split("/"):
            child = node.children.get(level)
            if child is None:
                return []
            node = child
        names: list[str] = []
        open_nodes = [(topic, node)]
        while open_nodes:
            name, node = open_nodes.pop()
            for level, child in node.children.items():
                if level != "+":
                    open_nodes.append((f"{name}/{level}", child))
                    if child.here:
                        names.append(f"{name}/{level}")
        return names

    def match(self, topic: str) -> list[tuple[K, V]]:
        """Key and value of every filter that matches this topic name."""
        matching: list[tuple[K, V]] = []
        levels = topic.split("/")
        nodes = [self._root]
        # A wildcard at the first level does not match a topic that begins with "$" (4.7.2-1).
        plain = not topic.startswith("$")
        for depth, level in enumerate(levels):
            following: list[_FilterNode[K, V]] = []
            for node in nodes:
                if plain or depth:
                    matching.extend(node.beneath.items())
                    wild = node.children.get("+")
                    if wild is not None:
                        following.append(wild)
                exact = node.children.get(level)
                if exact is not None:
                    following.append(exact)
            nodes = following
        for node in nodes:
            matching.extend(node.beneath.items())  # "a/#" matches "a" itself (4.7.1.2)
            matching.extend(node.here.items())
        return matching


class _TopicNode(Generic[V]):
    __slots__ = ("children", "topic", "value")

    def __init__(self) -> None:
        self.children: dict[str, _TopicNode[V]] = {}
        self.topic = ""  # of a node that holds a value
        self.value: V | None = None

    def bare(self) -> bool:
        return self.value is None and not self.children


class TopicTree(Generic[V]):
    """One value per topic name, found by filter: what is retained."""

    def __init__(self) -> None:
        self._root: _TopicNode[V] = _TopicNode()
        self.size = 0

    def get(self, topic: str) -> V | None:
        """The value at this topic name."""
        node = self._root
        for level in topic.split("/"):
            child = node.children.get(level)
            if child is None:
                return None
            node = child
        return node.value

    def put(self, topic: str, value: V) -> V | None:
        """Set the value; what was there before."""
        node = self._root
        for level in topic.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _TopicNode()
            node = child
        before = node.value
        self.size += before is None
        node.topic, node.value = topic, value
        return before

    def remove(self, topic: str) -> V | None:
        """Take the value away; what was there."""
        path: list[tuple[_TopicNode[V], str]] = []
        node = self._root
        for level in topic.split("/"):
            child = node.children.get(level)
            if child is None:
                return None
            path.append((node, level))
            node = child
        before, node.value = node.value, None
        self.size -= before is not None
        while path and node.bare():
            node, level = path.pop()
            del node.children[level]
        return before

    def match(self, topic_filter: str) -> Iterator[tuple[str, V]]:
        """Topic name and value of everything that the filter matches."""
        for topic, value in self._steps(topic_filter):
            if value is not None:
                yield topic, value

    def walk(self, topic_filter: str) -> Iterator[V | None]:
        """The same values, and None for each step in between; the tree may change meanwhile."""
        return (value for _topic, value in self._steps(topic_filter))

    def _steps(self, topic_filter: str) -> Iterator[tuple[str, V | None]]:
        levels = topic_filter.split("/")
        stack = [(self._root, 0)]
        while stack:
            node, depth = stack.pop()
            value = None
            if depth == len(levels) or levels[depth] == "#":
                value = node.value
                below = [] if depth == len(levels) else self._visible(node, depth)
                children = [(child, depth) for child in below]
            elif levels[depth] == "+":
                children = [(child, depth + 1) for child in self._visible(node, depth)]
            else:
                exact = node.children.get(levels[depth])
                children = [(exact, depth + 1)] if exact is not None else []
            stack.extend(reversed(children))
            yield node.topic, value

    def _visible(self, node: _TopicNode[V], depth: int) -> list[_TopicNode[V]]:
        if depth or node is not self._root:
            return list(node.children.values())
        return [child for level, child in node.children.items() if not level.startswith("$")]
