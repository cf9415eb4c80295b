"""From a document to a problem: everything that somebody may have written wrongly is told.

Owns the form of the document and its checks. Must not know where it came from. Invariant: what is
refused is refused with the path of the key and a sentence; keys that are not known are passed over.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, TypeVar

from planner.problem import (
    PARTIAL_MARK,
    Content,
    Link,
    Mode,
    Node,
    Number,
    Problem,
    ProblemError,
    Task,
)

T = TypeVar("T")

NODES_MAX = 5_000  # the searches hold a matrix of hop counts: 50 MB at most
LINKS_MAX = 100_000  # 40 a broker at that size
TASKS_MAX = 20_000
CONTENTS_MAX = 20_000
STREAMS_MAX = 100_000  # each (content, origin) and each (task, key) is one
NUMBER_MAX = 1e30  # times hops and streams, a float still holds it
HALF = re.compile("[\ud800-\udfff]")  # JSON can spell it, though it is no character
SHOWN_CHARS_MAX = 40  # of a number that is refused


def read_problem(document: object) -> Problem:
    """The problem that a decoded document describes. Raises ProblemError, naming the key."""
    top = _object(document, "")
    nodes = _list(top, "nodes", _node, NODES_MAX)
    if not nodes:
        raise ProblemError("nodes", "there is no broker")
    brokers = _unique((node.id for node in nodes), "nodes")
    links = _list(top, "links", _link, LINKS_MAX)
    _check_links(links, brokers)
    contents = _list(top, "contents", _content, CONTENTS_MAX)
    tasks = _list(top, "tasks", _task, TASKS_MAX)
    feeders = _unique((content.id for content in contents), "contents")
    for index, task in enumerate(tasks):
        if task.id in feeders:
            raise ProblemError(f"tasks[{index}].id", f"{task.id} is another task's or a content's")
        feeders[task.id] = index
    for index, content in enumerate(contents):
        _known_nodes(content.rates, brokers, f"contents[{index}].rates")
    for index, task in enumerate(tasks):
        _check_task(task, f"tasks[{index}]", brokers, feeders)
    name, server = top.get("name"), top.get("server")
    if name is not None and name != "":
        text(name, "name")
    if server is not None:
        _known_nodes([text(server, "server")], brokers, "server")
    problem = Problem(nodes, links, contents, tasks, name or "", server)
    _check_keys(problem)
    return problem


# --- the parts --------------------------------------------------------------------------------


def _node(entry: Mapping[str, Any], path: str) -> Node:
    return Node(
        text(entry.get("id"), f"{path}.id"),
        _limit(entry.get("capacity"), f"{path}.capacity"),
        _limit(entry.get("egress"), f"{path}.egress"),
    )


def _link(entry: Mapping[str, Any], path: str) -> Link:
    return Link(
        text(entry.get("a"), f"{path}.a"),
        text(entry.get("b"), f"{path}.b"),
        _limit(entry.get("capacity"), f"{path}.capacity"),
    )


def _content(entry: Mapping[str, Any], path: str) -> Content:
    rates = _object(entry.get("rates"), f"{path}.rates")
    return Content(
        text(entry.get("id"), f"{path}.id"),
        {key: number(rate, f"{path}.rates.{key}") for key, rate in rates.items()},
    )


def _task(entry: Mapping[str, Any], path: str) -> Task:
    entry = {key: value for key, value in entry.items() if value is not None}  # null: left out
    modes = {mode.value: mode for mode in Mode}
    mode = modes.get(text(entry.get("mode", Mode.SINGLE.value), f"{path}.mode"))
    if mode is None:
        raise ProblemError(f"{path}.mode", f"expected one of {', '.join(modes)}")
    partial_rate = entry.get("partial_rate", None if mode is Mode.AGGREGATE else 0)
    hosts = entry.get("hosts")
    keyed = mode is Mode.SHARDED
    return Task(
        id=text(entry.get("id"), f"{path}.id"),
        inputs=_texts(entry.get("inputs"), f"{path}.inputs"),
        mode=mode,
        cost=_keyed(entry.get("cost", 0), f"{path}.cost", number, keyed=mode is not Mode.SINGLE),
        rate=_keyed(entry.get("rate"), f"{path}.rate", number, keyed=keyed),
        destinations=_keyed(entry.get("destinations"), f"{path}.destinations", _ends, keyed=keyed),
        hosts=None if hosts is None else _texts(hosts, f"{path}.hosts"),
        merge_cost=number(entry.get("merge_cost", 0), f"{path}.merge_cost"),
        partial_rate=number(partial_rate, f"{path}.partial_rate"),
    )


def _keyed(
    value: object, path: str, read: Callable[[object, str], T], *, keyed: bool
) -> T | Mapping[str, T]:
    """Return what `read` makes of a value, or of each value by key."""
    if keyed and isinstance(value, Mapping):
        return {key: read(each, f"{path}.{key}") for key, each in value.items()}
    return read(value, path)


def _ends(value: object, path: str) -> tuple[str, ...]:
    return () if value is None else _texts(value, path)


# --- what must fit together -------------------------------------------------------------------


def _check_links(links: Iterable[Link], brokers: Mapping[str, int]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, link in enumerate(links):
        _known_nodes([link.a], brokers, f"links[{index}].a")
        _known_nodes([link.b], brokers, f"links[{index}].b")
        if link.a == link.b:
            raise ProblemError(f"links[{index}]", f"{link.a} is linked with itself")
        ends = (min(link.a, link.b), max(link.a, link.b))
        if ends in seen:
            raise ProblemError(f"links[{index}]", f"{link.a} and {link.b} are linked already")
        seen.add(ends)


def _check_task(
    task: Task, path: str, brokers: Mapping[str, int], feeders: Mapping[str, int]
) -> None:
    for place, name in enumerate(task.inputs):
        if name not in feeders:
            raise ProblemError(f"{path}.inputs[{place}]", f"no content or task is called {name}")
    if task.hosts is not None:
        _known_nodes(task.hosts, brokers, f"{path}.hosts")
        if not task.hosts:
            raise ProblemError(f"{path}.hosts", "no broker is allowed; leave it out to allow all")
    if isinstance(task.destinations, Mapping):
        for key, names in task.destinations.items():
            _known_nodes(names, brokers, f"{path}.destinations.{key}")
    else:
        _known_nodes(task.destinations, brokers, f"{path}.destinations")


def _check_keys(problem: Problem) -> None:
    """Of keyed tasks: that there are keys, and that what is said by key is said of each."""
    names: dict[str, str] = {}
    for index, content in enumerate(problem.contents):
        for key in content.rates:
            _claim(names, f"{content.id}@{key}", f"contents[{index}].id")
    for index, task in enumerate(problem.tasks):
        path = f"tasks[{index}]"
        if task.mode is Mode.SINGLE:
            _claim(names, task.id, f"{path}.id")
            continue
        keys = problem.input_keys(task)
        if all(problem.keys[name] is None for name in task.inputs):
            what = "shard" if task.mode is Mode.SHARDED else "partial"
            raise ProblemError(f"{path}.inputs", f"none has keys, so there can be no {what}")
        for key in keys:
            for name, values in (("cost", task.cost), ("rate", task.rate)):
                if isinstance(values, Mapping) and key not in values:
                    raise ProblemError(f"{path}.{name}.{key}", "missing: it is a key of the inputs")
        if task.mode is Mode.AGGREGATE:
            _claim(names, task.id, f"{path}.id")
        else:
            for key in keys:
                _claim(names, f"{task.id}@{key}", f"{path}.id")
    _check_partials(problem, names)


def _check_partials(problem: Problem, names: Mapping[str, str]) -> None:
    """Check that what partials send has its own names, wherever they run, whatever names hold."""
    aggregates = {task.id for task in problem.tasks if task.mode is Mode.AGGREGATE}
    brokers = {node.id for node in problem.nodes}
    for stream, path in names.items():
        if any(task in aggregates and broker in brokers for task, broker in _splits(stream)):
            raise ProblemError(path, f"two streams could be called {stream}")
    later = {
        first for node in problem.nodes for first, second in _splits(node.id) if second in brokers
    }
    for index, task in enumerate(problem.tasks):
        for before, between in _splits(task.id) if task.id in aggregates else ():
            if before in aggregates and between in later:
                sentence = f"partials of {task.id} and of {before} could be called the same"
                raise ProblemError(f"tasks[{index}].id", sentence)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and behind each mark of a partial in a name."""
    place = name.find(PARTIAL_MARK)
    while place >= 0:
        yield name[:place], name[place + len(PARTIAL_MARK) :]
        place = name.find(PARTIAL_MARK, place + 1)


def _claim(names: dict[str, str], stream: str, path: str) -> None:
    if stream in names:
        raise ProblemError(path, f"two streams would be called {stream}")
    if len(names) >= STREAMS_MAX:
        raise ProblemError(path, f"there are more than {STREAMS_MAX} streams")
    names[stream] = path


def _known_nodes(names: Iterable[str], brokers: Mapping[str, int], path: str) -> None:
    for name in names:
        if name not in brokers:
            raise ProblemError(path, f"no broker is called {name}")


# --- values -----------------------------------------------------------------------------------


def _object(value: object, path: str) -> Mapping[str, Any]:
    if value is None and path:
        raise ProblemError(path, "missing")
    if not isinstance(value, Mapping):
        raise ProblemError(path, "not an object" if path else "the document is not an object")
    return value


def _array(value: object, path: str) -> list[Any]:
    if value is None:
        raise ProblemError(path, "missing")
    if not isinstance(value, list):
        raise ProblemError(path, "not an array")
    return value


def _list(
    top: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], T], entries_max: int
) -> tuple[T, ...]:
    value = _array(top.get(name), name)
    if len(value) > entries_max:
        raise ProblemError(name, f"has {len(value)} entries, more than {entries_max}")
    paths = [f"{name}[{index}]" for index in range(len(value))]
    return tuple(read(_object(e, path), path) for e, path in zip(value, paths, strict=True))


def _unique(names: Iterable[str], path: str) -> dict[str, int]:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in seen:
            sentence = f"{name} is also the id of {path}[{seen[name]}]"
            raise ProblemError(f"{path}[{index}].id", sentence)
        seen[name] = index
    return seen


def text(value: object, path: str) -> str:
    """A text that is not empty and that can be written again. Raises ProblemError."""
    if value is None:
        raise ProblemError(path, "missing")
    if not isinstance(value, str) or not value:
        raise ProblemError(path, "not a text")
    if not value.isascii() and HALF.search(value):
        raise ProblemError(path, "has half of a surrogate pair, which no file can hold")
    return value


def _texts(value: object, path: str) -> tuple[str, ...]:
    entries = enumerate(_array(value, path))
    return tuple(dict.fromkeys(text(entry, f"{path}[{i}]") for i, entry in entries))


def _limit(value: object, path: str) -> Number | None:
    """None where nothing is bounded: by null, or by what no load within NUMBER_MAX comes to."""
    unbounded = isinstance(value, int | float) and value > NUMBER_MAX * STREAMS_MAX
    expected = "0 or more, or null for no limit"
    return None if value is None or unbounded else number(value, path, inf, expected)


def number(
    value: object, path: str, number_max: float = NUMBER_MAX, expected: str = f"0 to {NUMBER_MAX:g}"
) -> Number:
    """A number from 0 on that a float holds. Raises ProblemError."""
    if value is None:
        raise ProblemError(path, "missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(path, "not a number")
    if not 0 <= value <= number_max:  # nor is what is no number; a long integer is no float
        raise ProblemError(path, f"found {str(value)[:SHOWN_CHARS_MAX]}, expected {expected}")
    return value
