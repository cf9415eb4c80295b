"""What is wrong with running brokers, by what they answer; each with what mends it.

Owns the questions that `headwater doctor` asks of answers. Must not know how brokers are asked, nor
do anything about a finding. Invariant: each finding names whom it is about and a command or a
setting that mends it; a healthy network has none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from headwater.cli.network.answers import BrokerAnswers

PATHS: Final = ("/v1/status", "/readyz", "/v1/subscriptions")
SKEW_MS_MAX = 5_000  # an answer over a slow line may take some seconds by itself
MEMORY_SHARE_MAX = 0.9
CONNECTIONS_SHARE_MAX = 0.9
DISK_SHARE_MIN = 0.05
CERTIFICATE_MS_MIN = 30 * 86_400_000  # half a year's certificates are renewed a month before
CERTIFICATES: Final = {
    "mqtt": "mqtt.tls_cert",
    "links": "links.tls_cert",
    "links_authority": "links.tls_ca",
}
Level = Literal["error", "warning"]

MULTICAST_MEND: Final = (
    "connect it to a network whose interface does multicast (`ip link set DEV multicast on`), let "
    "UDP port 5353 through its firewall, or set links.seeds in place of links.discover"
)

# What the reason of a link that is down, or of intake that is held, says, and what mends that.
MENDS: Final = (
    ("multicast", MULTICAST_MEND),
    ("MQTT server", "start that server, or correct its address under [joins]"),
    ("secret", "give both brokers the same links.secret_file, then `headwater reload` at each"),
    ("certificate", "renew tls_cert and tls_ca of [links] there, then `headwater reload`"),
    ("TLS", "set tls_cert, tls_key and tls_ca under [links] at both brokers, or at neither"),
    ("refused", "start that broker, or correct its address under [links.peers]"),
    ("no route", "correct its address under [links.peers], or the network between the two"),
    ("silent", "see whether that broker and the network to it are overloaded: `headwater top`"),
    ("name", "give one of the two brokers another broker.name, and start it again"),
    ("space", "make room on the disk of its data directory; it goes on by itself"),
    ("journal", "make room on the disk of its data directory; it goes on by itself"),
    ("database", "mend what `database` under [data] names, or its disk; it goes on by itself"),
)
UNDISCOVERED = "brokers on its network segment cannot be discovered"
ELSE = "its log says more: `journalctl -u headwater`, or `docker compose logs`"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: how bad, with whom, what, and what mends it."""

    level: Level
    about: str
    sentence: str
    mend: str


def mend_of(reason: str) -> str:
    """Return what mends a fault with this reason."""
    return next((mend for word, mend in MENDS if word.lower() in reason.lower()), ELSE)


def findings(answers: Sequence[BrokerAnswers], now_ms: int) -> list[Finding]:
    """Return all that is wrong, broker by broker; `now_ms` is the time of day here."""
    rows: list[Finding] = []
    for answer in answers:
        if answer.error is not None:
            reason = "; ".join(answer.error.messages)
            mend = "start it with `headwater broker --config FILE`, or correct its address"
            rows.append(Finding("error", answer.broker.url, reason, mend))
            continue
        status = answer.by_path.get("/v1/status", {})
        listed = answer.by_path.get("/v1/subscriptions", {}).get("subscriptions", [])
        missing = answer.by_path.get("/readyz", {}).get("missing", [])
        for check in (
            _health(status, missing),
            _clock(status, now_ms),
            _room(status),
            _connections(status),
            _certificates(status, now_ms),
            _links(status),
            _discovery(status),
            _absent(status),
            _suspended(listed),
        ):
            rows += [Finding(level, answer.name, *words) for level, *words in check]
    return rows + _versions(answers)


Row = tuple[Level, str, str]


def _health(status: Mapping[str, Any], missing: Iterable[object]) -> Iterator[Row]:
    if status.get("healthy") is False:
        yield "error", "it has met a fault of its own", "start it again, and report its log"
    for reason in map(str, missing):
        yield "error", f"it takes no events: {reason}", mend_of(reason)


def _clock(status: Mapping[str, Any], now_ms: int) -> Iterator[Row]:
    mend = "have its clock set: `timedatectl set-ntp true` there"
    gap_ms = status.get("clock", {}).get("gap_ms", 0)
    skew_ms = status.get("time_of_day", now_ms) - now_ms
    if gap_ms:
        yield "warning", f"its clock has jumped by {_span(gap_ms)}", mend
    elif abs(skew_ms) > SKEW_MS_MAX:
        side = "ahead of" if skew_ms > 0 else "behind"
        yield "error", f"its clock is {_span(abs(skew_ms))} {side} the one here", mend


def _room(status: Mapping[str, Any]) -> Iterator[Row]:
    process = status.get("process", {})
    used, limit = process.get("memory_bytes", 0), process.get("memory_bytes_max")
    if limit and used > MEMORY_SHARE_MAX * limit:
        sentence = f"it uses {used >> 20} of {limit >> 20} MB of memory"
        yield "warning", sentence, "raise the limit of its container or unit, or move tasks away"
    journal = status.get("journal") or {}
    free, size = journal.get("disk_free_bytes"), journal.get("disk_size_bytes")
    if size and free is not None and free < DISK_SHARE_MIN * size:
        sentence = f"the disk of its data directory has {free >> 20} of {size >> 20} MB left"
        yield "warning", sentence, "make room there, or lower results_bytes_max under [data]"


def _connections(status: Mapping[str, Any]) -> Iterator[Row]:
    mqtt = status.get("mqtt") or {}
    used, limit = mqtt.get("connections", 0), mqtt.get("connections_max")
    if limit is None or used <= CONNECTIONS_SHARE_MAX * limit:
        return
    sentence = f"{used:,} of {limit:,} MQTT connections are taken"
    mend = "close some, or raise connections_max under [mqtt_limits] there, then start it again"
    if used < limit:
        yield "warning", sentence, mend
    else:
        yield "error", f"{sentence}: further ones are closed", mend


def _certificates(status: Mapping[str, Any], now_ms: int) -> Iterator[Row]:
    for purpose, end_s in status.get("certificates", {}).items():
        setting = CERTIFICATES.get(purpose, purpose)
        left_ms = end_s * 1000 - now_ms
        mend = f"renew the file of {setting} there, then `headwater reload`"
        if left_ms <= 0:
            yield "error", f"a certificate of {setting} ended {_span(-left_ms)} ago", mend
        elif left_ms < CERTIFICATE_MS_MIN:
            yield "warning", f"a certificate of {setting} ends in {_span(left_ms)}", mend


def _links(status: Mapping[str, Any]) -> Iterator[Row]:
    network = status.get("network") or {}
    for peer, link in network.get("links", {}).items():
        if link.get("state") != "up":
            reason = str(link.get("reason") or "no reason is known")
            forget = f"; `headwater forget {peer}` if it will not come back"
            yield "error", f"no link to {peer}: {reason}", mend_of(reason) + forget


def _discovery(status: Mapping[str, Any]) -> Iterator[Row]:
    discovery = (status.get("network") or {}).get("discovery") or {}
    if reason := str(discovery.get("reason", "")):
        yield "warning", f"{UNDISCOVERED}: {reason}", mend_of(reason)


def _absent(status: Mapping[str, Any]) -> Iterator[Row]:
    network = status.get("network") or {}
    away = network.get("away", {})
    for name, absence in away.items():
        waiting = absence.get("subscriptions", [])
        if waiting and absence.get("overdue"):
            sentence = f"{', '.join(map(str, waiting))} wait for {name}, which is away"
            mend = f"start {name}, or `headwater forget {name}` if it will not come back"
            yield "error", sentence, mend
    for name in network.get("unreachable", {}):
        if name not in away:
            mend = f"start {name}, or `headwater forget {name}` if it will not come back"
            yield "warning", f"{name} is known and cannot be reached", mend


def _suspended(listed: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    for row in listed:
        if row.get("state") == "suspended":
            name = row.get("subscription")
            mend = f"bound its work, then `headwater resume {name}`; or `headwater cancel {name}`"
            yield "error", f"{name} of {row.get('subscriber')} is suspended", mend


def _versions(answers: Sequence[BrokerAnswers]) -> list[Finding]:
    """Find brokers of different versions, which understand each other, though not for ever."""
    by_version: dict[str, list[str]] = {}
    for answer in answers:
        if version := answer.by_path.get("/v1/status", {}).get("version"):
            by_version.setdefault(str(version), []).append(answer.name)
    if len(by_version) < 2:
        return []
    rows = "; ".join(f"{version} at {', '.join(names)}" for version, names in by_version.items())
    mend = "update the older ones, one at a time: `headwater drain`, update, start"
    return [Finding("warning", "network", f"brokers of different versions: {rows}", mend)]


def _span(span_ms: int) -> str:
    seconds = abs(span_ms) / 1000
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"
