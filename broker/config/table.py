"""The one table of settings: every key with its type, default, unit, limits and meaning.

Owns what can be configured; the reader, the generated page docs/configuration.md and
`headwater config show` all read it. Must not know files, the environment or how a value is used.
Invariant: every field of a section carries its meaning, as an `About` here or, where a part states
its own limits, with them.
"""

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from broker.config.about import About
from broker.config.coordinator import CoordinatorSection
from broker.config.joins import JoinSection
from broker.config.links import LinksSection
from broker.config.mappings import MappingSection
from broker.config.named import NAMED, NAMED_TYPES
from broker.engine.limits import Limits
from broker.mqtt.limits import MqttLimits
from broker.network.overlay.limits import TopologyLimits
from broker.network.session.limits import LinkLimits
from broker.rights.names import NAME_PATTERN, NAME_SAYS

LIMIT_AT_MOST = 2**40  # more is a slip of the keyboard


def _port(meaning: str) -> About:
    return About(meaning, at_least=0, at_most=65535)


def _count(meaning: str, unit: str, at_most: int = 10_000_000) -> About:
    return About(meaning, unit=unit, at_least=1, at_most=at_most)


class BrokerSection(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of this broker."""

    name: Annotated[
        str,
        About(
            "the broker's name, unique in its network; names its status topic and its log lines. "
            "Empty: that of the host, which is kept in the data directory from the first start on",
            pattern=rf"(?:{NAME_PATTERN})?",
            pattern_says=f"{NAME_SAYS}, or nothing",
            may_be_empty=True,
        ),
    ] = "broker"
    data_dir: Annotated[
        str,
        About(
            "this broker's own directory, for what has to outlast the process (see "
            "docs/durability.md); empty: nothing does, and an acknowledgement means no more than "
            "that an event is in memory. With `*` as its last part several brokers share what "
            "stands before it: each takes the first directory `1`, `2`, … there that is free",
            path=True,
            may_be_empty=True,
        ),
    ] = "headwater-data"
    rights: Annotated[
        str,
        About(
            "file of users, tokens, roles and quotas (see docs/rights.md); read again on SIGHUP "
            "and `headwater reload`; without users in it, or without one, everybody may do all",
            path=True,
        ),
    ] = ""
    tables: Annotated[
        str,
        About(
            "directory of the tables (`*.csv`) that specifications may name; read at the start",
            path=True,
        ),
    ] = ""
    functions: Annotated[
        str,
        About(
            "Python file of functions of one's own that specifications may call (see "
            "docs/functions.md); run at the start",
            path=True,
        ),
    ] = ""
    run_given_functions: Annotated[
        bool,
        About(
            "run the functions that are given to the network with `headwater functions add`, with "
            "the rights of this broker (see docs/functions.md); without it they are kept for "
            "other brokers alone",
        ),
    ] = False


def _bytes(meaning: str, at_least: int) -> About:
    return About(meaning, unit="bytes", at_least=at_least, at_most=LIMIT_AT_MOST)


class JournalSection(msgspec.Struct, frozen=True, kw_only=True):
    """The journal on disk of what the broker is told, kept as long as it is needed."""

    segment_bytes: Annotated[
        int, _bytes("size of a file of the journal; what is needed no more goes by whole files", 1)
    ] = 8_388_608
    snapshot_bytes: Annotated[
        int,
        _bytes(
            "written to the journal between two snapshots, at least, and four times as much as the "
            "last one took; a start after a crash reads as much again",
            1,
        ),
    ] = 16_777_216
    waiting_bytes_max: Annotated[
        int,
        _bytes("what may wait for the disk; beyond: intake is held until half of it is left", 1),
    ] = 16_777_216
    size_bytes_max: Annotated[
        int,
        _bytes(
            "size of the journal, to which it grows only where no snapshot can be taken, what "
            "waits for it included; once reached: intake is held",
            1,
        ),
    ] = 1_073_741_824
    sync_delay_ms: Annotated[
        int,
        About(
            "added to every sync of the journal, to see what a slow disk does",
            unit="ms",
            at_least=0,
            at_most=10_000,
        ),
    ] = 0


class DataSection(msgspec.Struct, frozen=True, kw_only=True):
    """The log of results, and how long results are kept in it."""

    database: Annotated[
        str,
        About(
            "URL of the database; empty: SQLite in `headwater.db` in the data directory",
            secret=True,
        ),
    ] = ""
    acked_age_ms: Annotated[
        int,
        About(
            "a result that all consumers have acknowledged is kept for so long",
            unit="ms",
            at_least=0,
            at_most=LIMIT_AT_MOST,
        ),
    ] = 3_600_000
    age_ms_max: Annotated[
        int,
        About(
            "no result is kept for longer; beyond: consumers are told of the gap",
            unit="ms",
            at_least=1,
            at_most=LIMIT_AT_MOST,
        ),
    ] = 604_800_000
    results_bytes_max: Annotated[
        int,
        _bytes("size of all results that are kept; beyond: the oldest go, counted and told", 1),
    ] = 1_073_741_824


class MqttSection(msgspec.Struct, frozen=True, kw_only=True):
    """The address at which sensors, subscribers and actuators connect."""

    host: Annotated[str, About("address to listen on; beyond loopback users are required")] = (
        "127.0.0.1"
    )
    port: Annotated[int, _port("port without TLS; 0 takes any free one and logs it")] = 1883
    plain: Annotated[bool, About("listen without TLS at all")] = True
    tls_port: Annotated[int, _port("port with TLS, used once `tls_cert` is set; 0: any free")] = (
        8883
    )
    tls_cert: Annotated[
        str, About("certificate chain in PEM; turns the TLS listener on", path=True)
    ] = ""
    tls_key: Annotated[str, About("private key of `tls_cert` in PEM", path=True)] = ""
    tls_client_ca: Annotated[
        str,
        About(
            "authority in PEM whose client certificates are taken on the TLS listener; the common "
            "name of one is its client's user name",
            path=True,
        ),
    ] = ""
    tls_client_certificates: Annotated[
        Literal["required", "optional"],
        About("whether the TLS listener closes who brings none; used once `tls_client_ca` is set"),
    ] = "required"
    prefix: Annotated[
        str,
        About(
            "first level or levels of Headwater's own topics",
            pattern=r"[^/+#$\x00][^+#\x00]{0,99}(?<!/)",
            pattern_says="a topic without wildcards that neither begins nor ends with `/`",
        ),
    ] = "headwater"


class HttpSection(msgspec.Struct, frozen=True, kw_only=True):
    """The address at which the command line, probes and Prometheus connect."""

    enabled: Annotated[bool, About("listen for HTTP at all")] = True
    host: Annotated[
        str,
        About(
            "address to listen on; beyond loopback users are required, and a proxy with TLS before "
            "it is advised, as passwords would travel in the clear"
        ),
    ] = "127.0.0.1"
    port: Annotated[int, _port("port; 0 takes any free one and logs it")] = 8080


class IntakeSection(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions under which events are let in."""

    lateness_ms: Annotated[
        int,
        About(
            "how far a source's event may lie behind its newest one before it is late; "
            "windows and other tasks that wait for completeness wait as long",
            unit="ms",
            at_least=0,
            at_most=86_400_000,
        ),
    ] = 1000
    idle_timeout_ms: Annotated[
        int,
        About(
            "a source that is silent for longer is no longer waited for",
            unit="ms",
            at_least=1,
            at_most=86_400_000,
        ),
    ] = 60_000
    drift_ppm: Annotated[
        int,
        About(
            "greatest drift of the sources' clocks: durations are uncertain by so much",
            unit="ppm",
            at_least=0,
            at_most=999_999,
        ),
    ] = 0
    require_timestamp: Annotated[
        bool, About("refuse an event without a time instead of stamping it on arrival")
    ] = False
    clock_wait_ms: Annotated[
        int,
        About(
            "for how long a system clock that has jumped must stay where it is before readings "
            "without a time are stamped by it; until then time goes on by the steady clock",
            unit="ms",
            at_least=0,
            at_most=86_400_000,
        ),
    ] = 60_000


class HttpLimitsSection(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the HTTP face.

    The length of a specification is bounded under [limits], failed logins under [mqtt_limits].
    """

    connections_max: Annotated[
        int, _count("connections at a time; a further one is closed", "connections")
    ] = 500
    streams_max: Annotated[
        int, _count("clients that follow results; a further one is refused", "clients")
    ] = 100
    stream_queue_max: Annotated[
        int, _count("results that wait for one such client; then it is cut off", "results")
    ] = 10_000


class LogSection(msgspec.Struct, frozen=True, kw_only=True):
    """The log, written to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], About("the least that is written")
    ] = "info"
    format: Annotated[
        Literal["text", "json"], About("one line of text or one JSON object per entry")
    ] = "text"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's configuration, checked; a section is an attribute and a key one of the section."""

    broker: BrokerSection = BrokerSection()
    journal: JournalSection = JournalSection()
    data: DataSection = DataSection()
    mqtt: MqttSection = MqttSection()
    http: HttpSection = HttpSection()
    intake: IntakeSection = IntakeSection()
    limits: Limits = Limits()
    mqtt_limits: MqttLimits = MqttLimits()
    http_limits: HttpLimitsSection = HttpLimitsSection()
    links: LinksSection = msgspec.field(default_factory=LinksSection)
    link_limits: LinkLimits = LinkLimits()
    topology_limits: TopologyLimits = TopologyLimits()
    coordinator: CoordinatorSection = CoordinatorSection()
    log: LogSection = LogSection()
    joins: dict[str, JoinSection] = msgspec.field(default_factory=dict)
    mappings: dict[str, MappingSection] = msgspec.field(default_factory=dict)

    def section(self, name: str) -> Any:
        """The section of this name, also one such as `joins.hall`."""
        kind, _, member = name.partition(".")
        return getattr(self, kind)[member] if member else getattr(self, kind)

    def named(self) -> list[str]:
        """The sections that have names of their own, such as `joins.hall`."""
        return [f"{kind}.{member}" for kind in NAMED for member in getattr(self, kind)]


_LIMITS_SAY = {
    "limits": "Bounds of the core, the reason for each, and what happens to what exceeds it.",
    "mqtt_limits": "Bounds of the MQTT face, and the reason for each.",
    "link_limits": "Bounds and times of links, the reason for each, and what happens beyond it.",
    "topology_limits": "Bounds and times of what a broker knows of the network of brokers.",
}


class Setting(msgspec.Struct, frozen=True):
    """One row of the table. `kind` is bool, int, str or dict; `choices` limit a text."""

    section: str
    name: str
    kind: type
    default: Any
    about: About
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The dotted name, `mqtt.port`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that overrides it, `HEADWATER__MQTT__PORT`."""
        return f"HEADWATER__{self.section}__{self.name}".upper().replace(".", "__")

    @property
    def expected(self) -> str:
        """In words, what a value must be."""
        if self.kind is bool:
            return "true or false"
        if self.kind is dict and self.about.entries == "peer":
            return "a table of broker name = address with port"
        if self.kind is dict:
            return "a table of attribute = path"
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        if self.kind is str:
            return self.about.pattern_says or "a text in quotes"
        upper = "up" if self.about.at_most == LIMIT_AT_MOST else f"to {self.about.at_most}"
        bounds = f"a whole number from {self.about.at_least} {upper}"
        return f"{bounds} ({self.about.unit})" if self.about.unit else bounds


def sections(named: Iterable[str] = ()) -> dict[str, type[Any]]:
    """The section types by name, in the order of the table; behind them, such as `joins.hall`."""
    whole = {name: type_ for name, type_ in get_type_hints(Config).items() if name not in NAMED}
    return whole | {name: NAMED_TYPES[name.partition(".")[0]] for name in named}


def settings(named: Iterable[str] = ()) -> tuple[Setting, ...]:
    """Every row, in order; see `sections`."""
    types = sections(named)
    return tuple(row for section, type_ in types.items() for row in _rows(section, type_))


def introduction(section: str, type_: type[Any]) -> str:
    """Say what a section is about."""
    return _LIMITS_SAY.get(section) or inspect.cleandoc(type_.__doc__ or "")


def _rows(section: str, type_: type[Any]) -> Iterator[Setting]:
    defaults = type_()
    if dataclasses.is_dataclass(type_):
        for field in dataclasses.fields(type_):
            about = _limit(field.name, field.metadata["reason"], at_least=0)
            yield Setting(section, field.name, int, getattr(defaults, field.name), about)
        return
    for name, hint in get_type_hints(type_, include_extras=True).items():
        base, about = get_args(hint)
        if isinstance(about, msgspec.Meta):
            meaning = f"{about.description}; beyond: {about.title}"
            about = _limit(name, meaning, at_least=int(about.ge or 0))
        choices = get_args(base) if get_origin(base) is Literal else ()
        kind = str if choices else get_origin(base) or base
        yield Setting(section, name, kind, getattr(defaults, name), about, choices)


def _limit(name: str, meaning: str, *, at_least: int) -> About:
    """Describe a limit that the part which it bounds has stated itself."""
    units = {"bytes": "bytes", "ms": "ms", "s": "s", "chars": "characters"}
    unit = next((units[word] for word in name.split("_") if word in units), "")
    return About(meaning, unit=unit, at_least=at_least, at_most=LIMIT_AT_MOST)
