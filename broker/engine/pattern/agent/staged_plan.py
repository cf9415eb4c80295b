"""A case compiled: all that its partitions share, and how one of them goes on.

Owns the choice of operators (one by one, fused, or none), and the step of one partition from new
events to what is reported of them. Must not know where events come from, when a partition is due,
or which of them there are. Invariant: what a step reports depends on the partition and on what it
is given alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from broker.engine.event.occurrence import Occurrence
from broker.engine.filter.conditions import slots_read
from broker.engine.pattern.agent.chain_store import StoredChains, links_of
from broker.engine.pattern.agent.patience import Patience
from broker.engine.pattern.agent.search import Searching, search_of
from broker.engine.pattern.agent.staged_partition import (
    LOG_MAX,
    Entry,
    Group,
    Partition,
    consumption_of,
    derived,
    log_keep_ms,
    manner_of,
    needs_stages,
    reports_at_once,
    without_lists,
)
from broker.engine.pattern.fused.fusion import Fused, FusedPlan
from broker.engine.pattern.fused.sequence import SequencePlan
from broker.engine.pattern.fused.tree import Fusing, TreePlan
from broker.engine.pattern.layout.operands import Silence, composite, operands, types_that_last
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.prospects import Reach, prospect_of
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.selection.choice import Waiting, hold, take
from broker.engine.pattern.stage.base import Make, Site
from broker.engine.pattern.stage.memory import Memory
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.times.promises import Promise
from broker.engine.pattern.uncertainty.matching import key_function, leaf_select
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, Maybe
from broker.engine.pattern.uncertainty.verdicts import Doubt, certainty_at, certainty_of
from language.tree import Case, Subscription

DURATION_MAX_MS = 7 * 86_400_000
NOTHING_WAITS = Waiting()  # in all partitions where occurrences do not wait for their turn


class StagedPlan:
    """The compiled case of one agent."""

    def __init__(
        self,
        case: Case,
        layout: Layout,
        durations: Foresight,
        subscription: Subscription | None = None,
        doubt: Doubt | None = None,
        *,
        capacity: int = 0,
    ) -> None:
        """Compile.

        `doubt`: that of times; None where it does not matter to the case. `capacity`: of the store
        that a chain is given; 0 is none, and so have all other patterns.
        """
        self.layout = layout
        self.durations = durations = durations.of(types_that_last(layout.root))
        self.subscription = subscription
        self.doubt = doubt
        self.selects = [leaf_select(leaf, doubt) for leaf in layout.leaves]
        self.key = key_function(case.group_by) if case.group_by else None
        self._slots = slots_read(case.group_by)
        # Operators that no silence, list or choice of theirs holds up may all run as one.
        self.is_plain = doubt is None and not needs_stages(case, layout, subscription)
        if self.is_plain and not layout.joints:  # an event alone is in no later occurrence
            case = replace(case, consuming=())
        self.manner = manner_of(
            case,
            layout,
            DURATION_MAX_MS,
            None if subscription is None else subscription.at_most,
            durations,
            doubt=doubt,
            as_decided=self.is_plain and bool(layout.last),
        )
        # The paper keeps a relational store for each state (003, 3.3.2); with a bound on it only
        # plain sequences can say which event to let go, all others hold what they need.
        self.links = links_of(case, layout) if capacity and self.is_plain else None
        self._capacity = capacity
        either = reports_at_once(layout, self.manner, either=self.is_plain)
        self.at_once = either and self.links is None
        self.is_lone = self.is_plain and self.at_once and not layout.joints
        self.waits = not (self.is_plain and self.at_once)
        self.silences = any(isinstance(each, Silence) for each in operands(layout.root))
        consumption = consumption_of(layout, self.manner)
        if consumption == "spent":
            self.manner = replace(self.manner, consuming=())
        self.logs = bool(self.manner.consuming) and consumption == "again"
        self._log_keep_ms = log_keep_ms(layout)
        self._derived = derived(layout)
        self.contiguous = any(joint.next for joint in layout.joints)
        self.promise = Promise(case, layout, durations, doubt)
        self.chooses = self.manner.in_turn  # among whole occurrences, once time has come so far
        # Where the eldest of what is held is asked for, nothing waits elsewhere.
        self.in_turn = self.chooses or self.promise.lags
        self.fused: FusedPlan | SequencePlan | TreePlan | None = None
        self._make: Make | None = None
        self.timeless = True  # of what is fused: time alone decides nothing
        self._fused_site = Site((), durations, None, budget=layout.budget)
        self.timed = True  # time alone may decide something
        self._choose_operators(case)
        self.observes = not self.is_plain or self._asks_durations()
        held_up = self.logs or self.chooses or self.contiguous or self.manner.maybe_drop
        self.is_straight = not held_up  # what one operator passes on is what is reported

    def _choose_operators(self, case: Case) -> None:
        """Run the pattern as one operator where one can, and else as its operators one by one."""
        builder = Builder(self.layout, case.group_by, self.doubt, at_once=self.at_once)
        if self.is_plain and not self.is_lone:
            self.fused = FusedPlan(
                builder,
                self.durations,
                ordered=not self.at_once,
                consuming=bool(self.manner.consuming),
            )
        elif not self.is_plain:
            if not self.manner.consuming:
                # A subscription that ends is not plain, either, and may report at once.
                self.fused = Fusing(builder, self.durations).plan(ordered=not self.at_once)
            if self.promise.lags and not isinstance(self.fused, SequencePlan):
                self.fused = None
            if self.fused is None:
                self._make = builder.build(self.layout.root)
            elif not isinstance(self.fused, FusedPlan):
                self.timeless = self.fused.timeless
        self.timed = self.fused is None or self.chooses or not self.timeless

    def _asks_durations(self) -> bool:
        """Return True where a plain pattern depends on how long events last."""
        if self.layout.last or self.promise.lags:
            return True
        if self.links is not None:  # the store alone says how long what is kept
            return False
        return isinstance(self.fused, FusedPlan) and self.fused.asks_durations()

    def know(self, lasting: Mapping[str, int]) -> None:
        """Take up how long events have lasted, before what is restored is forgotten by it."""
        self.durations.know(lasting)
        if self.fused is not None and self.observes:
            self.fused.look_ahead()

    # --- partitions ----------------------------------------------------------------------

    def patience(self) -> Patience | None:
        """Return how events wait with their groups; None where they cannot."""
        if self.links is not None:
            assert isinstance(self.fused, FusedPlan)
            return StoredChains(self.fused, self.key, self.links, self._capacity, self.durations)
        if self.fused is None:
            may_wait = not (self.is_plain or self.at_once or self.in_turn)
        else:
            may_wait = not self.promise.lags and (self.is_plain or not self.chooses)
        may_wait = may_wait and self.doubt is None
        prospect = prospect_of(self.layout, in_order=not self.at_once) if may_wait else None
        if prospect is None:
            return None
        ends = self.subscription is not None and (
            self.subscription.for_ms is not None or self.subscription.until_ms is not None
        )
        search = None
        if isinstance(self.fused, SequencePlan) and not ends:
            search = search_of(self.fused.chain, self.layout.budget)
        if search is None:
            return Patience(prospect, self.key, self.new, self._slots)
        return Searching(prospect, self.key, self.new, search, self._slots)

    def new(self, key: Group, reach: Reach) -> Partition:
        """Return a partition without operators."""
        return Partition(key, reach, Waiting() if self.chooses else NOTHING_WAITS)

    def open(self, partition: Partition, begin: int | None) -> None:
        """Give a partition operators that know nothing; `begin`: when its task began."""
        partition.open = True
        if self.fused is not None:
            # All share one where nothing of a partition is kept in it.
            partition.site = self._fused_site.anew() if self.contiguous else self._fused_site
            partition.root = self.fused.open(partition.group, partition.site)
            return
        begin = None if self.key else begin
        site = Site(
            partition.group,
            self.durations,
            begin,
            self.at_once,
            self.doubt is None,
            budget=self.layout.budget,
        )
        if self.logs:
            site.memory = Memory()
        self._put_operators(partition, site)

    def _put_operators(self, partition: Partition, site: Site) -> None:
        assert self._make is not None
        site.leaves = [None] * len(self.layout.leaves)
        partition.site, partition.root = site, self._make(site)

    # --- a step --------------------------------------------------------------------------

    def advance(
        self, partition: Partition, entries: list[Entry], watermark: int
    ) -> list[Occurrence]:
        """Return what is reported of a partition that is given these events, in order."""
        if self.logs:
            partition.log += entries
        decided = self._decided(partition, entries, watermark)
        manner, waiting = self.manner, partition.waiting
        if not self.chooses:
            if manner.maybe_drop:
                return [each for each in decided if certainty_of(each) != MAYBE]
            return decided
        if self.fused is not None and not decided and not waiting.found:
            return decided
        waiting.found += decided

        def refind(reported: Occurrence, gone: set[int]) -> list[Occurrence]:
            return self._refind(partition, reported, gone, watermark)

        return take(
            waiting, manner, min(watermark, partition.root.hold()), refind, partition.root.begins
        )

    def _decided(
        self, partition: Partition, entries: list[Entry], watermark: int
    ) -> list[Occurrence]:
        root, site = partition.root, partition.site
        if isinstance(root, Fused):
            if self.contiguous:
                places = len(self.layout.leaves)
                site.name([event for place, event in entries if place >= places])
                entries = [entry for entry in entries if entry[0] < places]
            return root.step(entries, watermark)
        for place, event in entries:
            if place < len(site.leaves):
                site.leaves[place].events.append(event)
            elif self.contiguous:
                site.name([event])
        decided = root.advance(watermark)
        doubt, above = self.doubt, self.layout.root
        if doubt is None or composite(above):
            return decided
        # A single event whose span is asked about may be uncertain of itself.
        return [
            (Maybe(e.end), e.start, e) if certainty_at(above, e, doubt) == MAYBE else e
            for e in decided
        ]

    def _refind(
        self, partition: Partition, reported: Occurrence, gone: set[int], watermark: int
    ) -> list[Occurrence]:
        """All occurrences anew, without the consumed events as candidates.

        What was chosen up to the one that was reported last stands.
        """
        if not self.logs:
            return partition.take_out(gone)
        silent, places = self.layout.silent, len(self.layout.leaves)
        self.layout.budget.spend(len(partition.log))
        partition.log = [
            (place, event)
            for place, event in partition.log
            if id(event) not in gone or place in silent or place >= places
        ]
        if self.fused is not None:
            self.open(partition, None)
        else:
            old = partition.site
            assert old.memory is not None
            site = old.anew()
            site.memory = old.memory.after(without_lists(self.layout, reported), gone)
            self._put_operators(partition, site)
        return self._decided(partition, partition.log, watermark)

    def trim(self, partition: Partition, watermark: int) -> int:
        """Let it forget what can no longer matter, or is too much; count the latter."""
        excess = self._trim_log(partition, watermark) if partition.log else 0
        if isinstance(partition.root, Fused):
            partition.root.expire(watermark)
        if partition.site.named:
            partition.site.forget_named()
        return excess

    def _trim_log(self, partition: Partition, watermark: int) -> int:
        if isinstance(self.fused, FusedPlan):
            reach_ms = self.fused.reach_ms()
            if reach_ms is not None:
                partition.forget(watermark + 1 - reach_ms)
            return 0
        if self._log_keep_ms is not None:
            slack_ms = 0 if self.doubt is None else self.doubt.slack_ms(self._log_keep_ms)
            limit = min(watermark, partition.root.hold(), hold(partition.waiting))
            partition.forget(limit + 1 - self._log_keep_ms - slack_ms)
        elif self._derived:
            partition.forget_unheld()
        excess = max(0, len(partition.log) - LOG_MAX)
        del partition.log[:excess]
        return excess
