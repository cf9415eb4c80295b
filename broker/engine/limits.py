"""Every maximum of the core, each with its value, its reason and what happens at it.

Owns the numbers. Must not know who enforces them. Invariant: nothing that comes from outside can
make the core grow without a line here, and no overflow is silent: it is refused with a reason or
counted under the name that its policy gives.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, get_type_hints

import msgspec

from broker.engine.runtime.budget import BYTES_MAX, CANDIDATES_MAX


class LimitReachedError(Exception):
    """More was asked for than a limit allows; nothing was changed."""

    def __init__(self, name: str, maximum: int, what: str) -> None:
        super().__init__(f"{what}: at most {maximum} are allowed ({name})")
        self.name = name
        self.maximum = maximum


class LimitText(NamedTuple):
    """One limit as documents and the command line show it."""

    name: str
    value: int
    reason: str
    policy: str


def said(reason: str, policy: str, at_least: int = 1) -> msgspec.Meta:
    """Describe a limit: its reason, what happens to the excess, and the least value that works."""
    return msgspec.Meta(ge=at_least, description=reason, title=policy)


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maxima of one core; all are inclusive. Built by `make_limits` they are checked."""

    # --- what comes in -----------------------------------------------------------------------

    payload_bytes_max: Annotated[
        int, said("a batch of 5,000 events fits; more delays all others", "refused: too_large")
    ] = 1_048_576
    batch_events_max: Annotated[
        int, said("bounds the work and the memory of one payload", "refused: batch_too_long")
    ] = 10_000
    nesting_max: Annotated[
        int, said("an event needs two levels; strangers' extra keys a few", "refused: too_deep", 2)
    ] = 8
    text_chars_max: Annotated[
        int, said("values are readings and names, not documents", "refused: text_too_long")
    ] = 65_536
    bytes_max: Annotated[
        int, said("a small picture fits into one attribute", "refused: text_too_long")
    ] = 524_288
    name_chars_max: Annotated[
        int, said("ids, sources and locations are keys and topic levels", "refused: text_too_long")
    ] = 1_024
    future_ms_max: Annotated[
        int, said("one clock ahead makes its source's later events late", "refused", 0)
    ] = 60_000
    event_duration_ms_max: Annotated[
        int,
        said(
            "tasks wait as long for a beginning: a week",
            "refused: duration_too_long; what is detected without bound counted: outlasting",
            0,
        ),
    ] = 604_800_000
    uncertainty_ms_max: Annotated[
        int, said("a day: with more, no order of events is certain", "refused", 0)
    ] = 86_400_000
    sources_max: Annotated[
        int, said("each source has a clock of some 500 bytes", "refused: too_many_sources")
    ] = 100_000
    repeat_memory_events_max: Annotated[
        int, said("ids kept to know repeats: some 100 MB of events", "oldest forgotten, counted")
    ] = 500_000

    # --- what is installed -------------------------------------------------------------------

    types_max: Annotated[
        int, said("event types declared, each with its generated classes", "submission refused")
    ] = 1_000
    attributes_max: Annotated[
        int, said("attributes of one type: each is a slot of every event", "submission refused")
    ] = 256
    specification_bytes_max: Annotated[
        int, said("a thousand subscriptions are some 400,000 bytes", "submission refused")
    ] = 1_048_576
    unbounded_allowed: Annotated[
        int,
        said(
            "0 is no; else who has no name may submit texts whose partial matches nothing but"
            " `occurrences_held_max` limits (`headwater check --bounds` tells which); for users"
            " their quota says it",
            "submission refused",
            0,
        ),
    ] = 1
    install_effort_max: Annotated[
        int,
        said(
            "work of installing one text, in units of 25 µs in which nothing else happens: a second"
            " (10 a case, the square of the events it binds, a third of the text's parts)",
            "submission refused",
            100,
        ),
    ] = 40_000
    subscriptions_max: Annotated[
        int, said("each costs agents, contents and their memory", "submission refused")
    ] = 100_000
    definitions_max: Annotated[
        int, said("as subscriptions; a shared one counts as often as it runs", "submission refused")
    ] = 100_000
    contents_max: Annotated[
        int, said("distinct filters: about 1 kB each with their index", "submission refused")
    ] = 200_000
    filter_cells_max: Annotated[
        int, said("cells per range index and attribute; a bit per content each", "coarser cells", 2)
    ] = 1_024

    # --- what is held ------------------------------------------------------------------------

    events_held_max: Annotated[
        int,
        said(
            "events that one window, or tick, keeps: some 500 MB",
            "further ones refused: window_events_overflow; before a tick let out: tick_full",
        ),
    ] = 1_000_000
    occurrences_held_max: Annotated[
        int, said("occurrences that one agent keeps open", "oldest dropped: occurrences_overflow")
    ] = 1_000_000
    step_candidates_max: Annotated[
        int,
        said(
            "candidates that one step of an agent looks at, besides 160 for each event that it"
            " takes: an eighth of a second, in which nothing else happens",
            "its task suspended: too_much_work",
        ),
    ] = CANDIDATES_MAX
    step_bytes_max: Annotated[
        int,
        said("bytes of what one step of an agent makes", "its task suspended: too_much_work"),
    ] = BYTES_MAX
    retained_events_max: Annotated[
        int,
        said(
            "events kept for brokers that have not stored them: hours of a cut link, some 500 MB",
            "the oldest go: retained_lapsed, and who needed them is told the gap",
        ),
    ] = 1_000_000
    kept_back_ms_max: Annotated[
        int,
        said(
            "how far apart partners may be for one to wait on its way for the other",
            "what may be further apart travels at once",
            0,
        ),
    ] = 600_000
    kept_back_events_max: Annotated[
        int,
        said(
            "events of one origin that wait for partners before one link, each some 500 bytes",
            "the oldest travel",
            0,
        ),
    ] = 10_000
    progress_ms_max: Annotated[
        int,
        said(
            "how long a broker may owe a neighbour progress that nobody there waits for; half of it"
            " where something goes that way anyway",
            "it is said by itself",
            0,
        ),
    ] = 60_000
    partners_max: Annotated[
        int,
        said(
            "events that passed and may be partners of others to come: some 50 MB",
            "the older half forgotten: what may have a partner among them travels",
            2,
        ),
    ] = 100_000
    first_events_max: Annotated[
        int,
        said(
            "payloads, and other words of their sources, that wait until all brokers have said"
            " whether they want a type that is new here",
            "all are taken, and who had not asked misses them: first_events_overflow",
        ),
    ] = 10_000
    first_events_wait_ms_max: Annotated[
        int,
        said(
            "how long they wait where a broker that can be reached does not answer",
            "all are taken, and it may miss them: first_events_unanswered",
        ),
    ] = 60_000
    copies_max: Annotated[
        int,
        said(
            "results kept for the actors at one other broker until it has them",
            "the oldest not sent there: copies_overflow; they stay in the output log",
        ),
    ] = 10_000
    brokers_max: Annotated[
        int, said("other brokers that this one knows", "further ones refused: too_many_brokers")
    ] = 1_000
    recall_ms_max: Annotated[
        int,
        said(
            "how long a broker that begins asks others how far they have seen it: links need less",
            "it begins a new life, and admits",
            0,
        ),
    ] = 2_000
    cells_max: Annotated[
        int,
        said(
            "cells that run here; and ten times as many terms of cells that events are kept for",
            "further ones refused: too_many_cells",
        ),
    ] = 1_000
    actors_max: Annotated[
        int, said("listening actors, of which `to nearest` chooses", "not chosen: actors_full")
    ] = 10_000
    chain_events_max: Annotated[
        int,
        said(
            "0 is none; else events that one chain of `then` stores, for nodes with little memory",
            "newest of the oldest run overwritten: chain_overwritten",
            0,
        ),
    ] = 0
    groups_max: Annotated[
        int,
        said(
            "groups of one agent: keys may be invented",
            "of patterns the oldest dropped: groups_overflow; of windows further ones refused:"
            " window_groups_overflow",
        ),
    ] = 100_000

    def texts(self) -> tuple[LimitText, ...]:
        """Name, value, reason and policy of each, in the order of declaration."""
        hints = get_type_hints(type(self), include_extras=True)
        found = []
        for name in self.__struct_fields__:
            meta = hints[name].__metadata__[0]
            found.append(LimitText(name, getattr(self, name), meta.description, meta.title))
        return tuple(found)


def make_limits(**values: int) -> Limits:
    """Limits with some values of one's own; ValueError names the one that cannot be."""
    try:
        return msgspec.convert(values, Limits, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"limits: {error}") from None
