"""What a message of Sparkplug B says: readings by the names of their metrics, and who is gone.

Owns the meaning of a topic's levels and of births, data and deaths. Must not know mappings.
Invariant: a message is heard once, whoever wants it, and no alias is ever guessed at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.bridge.mapped_payload import UnmappableError, shown
from broker.bridge.sparkplug import wire
from broker.bridge.sparkplug.births import NODE, Birth, Births
from broker.bridge.sparkplug.values import Fault, value_of
from broker.config.mappings import SPARKPLUG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.bridge.sparkplug.births import EdgeNode
    from broker.bridge.sparkplug.wire import RawMetric, RawPayload

TOPIC_CHARS_MAX = 1_024  # of what may be remembered
SESSION = "bdSeq"  # the metric that tells which birth a death belongs to

_OF_NODES = frozenset({"NBIRTH", "NDATA", "NDEATH"})
_OF_DEVICES = frozenset({"DBIRTH", "DDATA", "DDEATH"})


class UnbornError(UnmappableError):
    """A payload that cannot be read without a birth; the edge node may be asked for it."""


class SparkplugAddress(NamedTuple):
    """The levels of a topic: speaker and subject. `device` is `NODE` for the edge node."""

    group: str
    message: str
    edge: str
    device: str

    @property
    def who(self) -> str:
        """For people."""
        return shown("/".join(filter(None, (self.group, self.edge, self.device))))

    def of_death(self, device: str) -> str:
        """The topic on which this edge node says that one of its devices, or itself, is gone."""
        levels = [SPARKPLUG, self.group, "DDEATH" if device else "NDEATH", self.edge]
        return "/".join([*levels, device] if device else levels)


class MetricReading(NamedTuple):
    """The value of a metric at a time (ms since the epoch, None: not said).

    A value is a bool, int, float, str or bytes, None where there is none, a Fault or Several.
    """

    name: str
    time: int | None
    value: Any


class Heard(NamedTuple):
    """A message's content. `gone`: the devices that are, `NODE` for the edge node itself."""

    readings: list[MetricReading]
    gone: list[str]


def address_of(topic: str) -> SparkplugAddress | None:
    """Read who speaks of what; None where the topic does not say how things are, as a command."""
    levels = topic.split("/")
    if levels[0] != SPARKPLUG or not all(levels):
        return None
    if len(levels) == 4 and levels[2] in _OF_NODES:
        return SparkplugAddress(levels[1], levels[2], levels[3], NODE)
    if len(levels) == 5 and levels[2] in _OF_DEVICES:
        return SparkplugAddress(levels[1], levels[2], levels[3], levels[4])
    return None


class Hearing:
    """Hears all messages of a server, each once and in order."""

    def __init__(self) -> None:
        self.births = Births()

    def hear(self, address: SparkplugAddress, payload: bytes, *, again: bool) -> Heard:
        """Hear a message; `again`: it may have come before. Raises UnmappableError."""
        if sum(map(len, address)) > TOPIC_CHARS_MAX:
            raise UnmappableError(f"found a topic of more than {TOPIC_CHARS_MAX} characters")
        try:
            raw = wire.read(payload)
        except UnmappableError:
            self.births.distrust(address.group, address.edge)
            raise
        if address.message == "NDEATH":
            return Heard([], self._ended(address, raw))
        with self.births.changing(address.group, address.edge) as edge:
            return _heard(edge, address, raw, again=again)

    def _ended(self, address: SparkplugAddress, raw: RawPayload) -> list[str]:
        """Find who is gone with an edge node.

        Its death may come after it was born anew: a server tells it when it notices that the
        connection before is dead.
        """
        edge = self.births.known(address.group, address.edge)
        if edge is None:
            return [NODE]
        session = _session(raw)
        if session is not None and edge.session is not None and session != edge.session:
            return []
        self.births.forget(address.group, address.edge)
        return [NODE, *(device for device in edge.births if device != NODE)]


def _heard(edge: EdgeNode, address: SparkplugAddress, raw: RawPayload, *, again: bool) -> Heard:
    device = address.device
    if address.message == "NBIRTH":
        edge.distrust()  # its devices are born anew, too
        edge.seq, edge.missed, edge.session = raw.seq, None, _session(raw)
    else:
        edge.follow(raw.seq, again=again)
    if address.message == "DDEATH":
        edge.drop(device)
        return Heard([], [device])
    if address.message in {"NBIRTH", "DBIRTH"}:
        edge.put(device, Birth(_announced(raw)))
    else:
        edge.put(device, None)
    birth = edge.births[device]
    metrics = (_named(metric, birth, edge, address) for metric in raw.metrics)
    return Heard([_reading(*named, raw.timestamp) for named in metrics], [])


def _announced(raw: RawPayload) -> Iterator[tuple[str, int | None, int | None]]:
    """Name, alias and type of each metric of a birth. One that nobody can name has no name."""
    for metric in raw.metrics:
        name = metric.name or ""
        yield name if len(name) <= wire.NAME_CHARS_MAX else "", metric.alias, metric.datatype


def _named(
    metric: RawMetric, birth: Birth | None, edge: EdgeNode, address: SparkplugAddress
) -> tuple[str, RawMetric, int | None]:
    """The metric with its name and type. Raises UnbornError."""
    declared = None
    if metric.alias is not None and birth is not None:
        declared = birth.by_alias.get(metric.alias)
    if metric.name is None:
        if metric.alias is None:
            raise UnmappableError("found a metric with neither name nor alias")
        if declared is None:
            raise UnbornError(f"found the alias {metric.alias}, {_why(birth, edge, address)}")
        return (
            declared.name,
            metric,
            declared.datatype if metric.datatype is None else metric.datatype,
        )
    datatype = metric.datatype
    if datatype is None and birth is not None:
        datatype = birth.by_name.get(metric.name)
    if datatype is None and birth is None and metric.carrier in {"int_value", "long_value"}:
        raise UnbornError(f"found a metric without a type, {_why(birth, edge, address)}")
    return metric.name, metric, datatype


def _why(birth: Birth | None, edge: EdgeNode, address: SparkplugAddress) -> str:
    if birth is not None:
        return f"which the last birth of {address.who} does not tell"
    if edge.missed is not None:
        before, after = edge.missed
        why = f"number {after} came after {before}, and what was missed may have been a birth"
        return f"and of edge node {shown(address.edge)} {why}"
    return f"and only a birth of {address.who} tells what it stands for: none is in force"


def _reading(
    name: str, metric: RawMetric, datatype: int | None, timestamp: int | None
) -> MetricReading:
    time = timestamp if metric.timestamp is None else metric.timestamp
    if not metric.carrier:
        return MetricReading(name, time, None)
    return MetricReading(name, time, value_of(metric.carrier, metric.value, datatype))


def _session(raw: RawPayload) -> int | None:
    for metric in raw.metrics:
        if metric.name == SESSION and metric.carrier in {"int_value", "long_value"}:
            value = value_of(metric.carrier, metric.value, metric.datatype or 4)
            return None if isinstance(value, Fault) else value
    return None
