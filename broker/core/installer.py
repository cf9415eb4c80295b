"""From a submitted text to tasks at work, and back.

Owns the way of a specification into one broker: check, compare with what is installed, declare,
install; and of a subscription out of it. Must not know connections or where answers go.
Invariant: of a text that is refused nothing is installed, and what was installed stays as it was.

Who a subscription belongs to: its subscriber, as `from` names it. Whoever submits it first acts
for the subscriber. These two alone may replace it by a text with a higher `seq`, or cancel it. A
client is known by the name with which it asks (the `<client>` level of the topic, or `client` in
HTTP), or, where users log in, by the user's name, which alone counts then. Where nobody logs in,
names are taken on trust; what a user submitted who had logged in is never changed on trust.

What a changed text keeps: a task goes by the key of its canonical text. Those whose key both texts
have are not touched, so that what they hold goes on. Others go on from the state of the task of
their name where they hold the same (`broker.engine.runtime.succession`). The rest begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from broker.core import refusals
from broker.core.catalogue import Catalogue, Installed, waiting_on
from broker.core.effort import effort
from broker.core.intake import ConflictError, Intake
from broker.core.messages import ResumeRequested
from broker.core.preview import (
    Predecessors,
    Preview,
    SubscriptionPreview,
    TextChange,
    bounds_in_words,
    look_for_heirs,
    own_predecessors,
    row_of,
    rows_of,
    travels_in_words,
)
from broker.core.refusals import Answer, RefusedError, Trouble, refused, trouble
from broker.core.shared_tasks import JoinedTasks, SharedTasks
from broker.core.suspension.agreement import suspend
from broker.engine.event.identity import digest
from broker.engine.limits import LimitReachedError, Limits
from broker.engine.runtime.matcher import Matcher
from broker.network.replication.time_promises import UNBOUNDED
from language import Checked, EventType, Specification, TableError, check_text
from language.tree import EventDeclaration, Subscription

if TYPE_CHECKING:
    from broker.core.effects import Notes, Publication
    from broker.core.messages import CancelRequested, SpecificationSubmitted
    from broker.core.options import BrokerOptions
    from broker.network.replication.time_promises import TimeBound
    from language import ReadTable, TaskGraph
    from language.tree import Span


class Asker(Struct, frozen=True):
    """Identify who asks; `proven`: by a password or certificate."""

    client: str
    proven: bool = False

    def speaks_for(self, one: Installed) -> bool:
        """Tell whether a subscription is the asker's to end or to replace."""
        known = self.proven or not one.proven
        return known and self.client in (one.subscriber, one.client)


def reader_of(tables: Mapping[str, str]) -> ReadTable:
    """Reads from tables that are there by name, and from nothing else."""

    def read(name: str) -> str:
        text = tables.get(name)
        if text is None:
            known = ", ".join(tables) or "none"
            raise TableError(f"this broker has no such table; it has {known}")
        return text

    return read


class Installer:
    """Installs and removes what clients ask for."""

    def __init__(
        self,
        catalogue: Catalogue,
        intake: Intake,
        matcher: Matcher,
        limits: Limits,
        tables: Mapping[str, str],
    ) -> None:
        self._reader = reader_of(tables)
        self.functions: Mapping[str, Any] = {}  # of one's own, that texts may call
        self._catalogue = catalogue
        self._intake = intake
        self._matcher = matcher
        self._limits = limits
        self.shared = SharedTasks(catalogue, matcher, limits, intake.ledger)
        self._joined = JoinedTasks(catalogue, matcher)
        self._declarations: dict[str, tuple[str, list[EventType]]] = {}  # by digest: owner, types
        self.elsewhere: Mapping[tuple[str, str], Any] = {}  # whose tasks run at other brokers
        # What subscriptions of a text may go on from, be it in cells or not.
        self.predecessors: Callable[[TextChange, bool], list[Predecessors]] = self._predecessors
        self.on_cancel: Callable[[Installed], None] = lambda _: None
        self.promised: Callable[[str], TimeBound] = lambda _: UNBOUNDED  # of the times of a type

    # --- submitting ----------------------------------------------------------------------

    def submit(self, message: SpecificationSubmitted, now: int) -> Answer:
        """Install all of a text, or nothing and tell why."""
        asker, keeps_state = Asker(message.client, message.proven), message.keeps_state
        try:
            specification = self._checked(message.text, message.checked)
            change = _change_of(message.text, specification, message.only)
            change.apart = message.apart
            plan = self._plan(change, asker, now)
            if (
                keeps_state and plan.leaving
            ):  # else it is as it was before any task could hand on what it holds
                look_for_heirs(plan, self.predecessors(plan, message.revises), self._limits)
            changes = rows_of(plan)
            begun = bool(plan.coming) and (self._carry_out(plan, now) or not keeps_state)
        except RefusedError as error:
            return refused(error.troubles)
        keys, names = tuple(plan.keys), tuple(name for _, name in plan.keys)
        answer = Answer(names, tuple(specification.definitions), changed=len(plan.coming))
        answer = replace(answer, state="accepted", keys=keys, changes=changes, begun=begun)
        return replace(answer, cells=plan.cells)

    def _predecessors(self, change: TextChange, _in_cells: bool) -> list[Predecessors]:
        """Return what subscriptions may go on from where all of them run here."""
        keys = [each.key for each in change.coming]
        return [own_predecessors(keys, self._catalogue, self._matcher, self.elsewhere)]

    def preview(
        self, text: str, checked: Checked | None, asker: Asker, options: BrokerOptions
    ) -> Preview | Answer:
        """Tell what `submit` would change, or why it would refuse; nothing is changed.

        A text that passes `contents_max` is found out only as its tasks are installed.
        """
        try:
            specification = self._checked(text, checked)
            plan = self._plan(_change_of(text, specification), asker, 0)  # times are not told
            if plan.leaving:
                look_for_heirs(plan, self.predecessors(plan, True), self._limits)
            self._check_declarations(plan)
        except RefusedError as error:
            return refused(error.troubles)
        graph = specification.graph
        changed = {(row.subscriber, row.subscription): row for row in rows_of(plan)}
        begun: dict[str, None] = {}
        rows = {
            key: SubscriptionPreview(key[1], key[0], "same") for key in specification.subscriptions
        }
        for coming in plan.coming:
            begins = plan.begins(coming)
            begun |= dict.fromkeys(begins)
            rows[coming.key] = changed.get(coming.key) or row_of(plan, coming, begins, "new")
        return Preview(
            tuple(rows.values()),
            self._ending(plan),
            bounds_in_words(graph, begun, self._limits, options.lateness_ms),
            travels_in_words(graph, begun, self._limits, options, self.promised)
            if options.networked
            else (),
        )

    def _ending(self, plan: TextChange) -> tuple[str, ...]:
        """Return the names of the definitions that nobody needs once the plan is carried out."""
        going = dict.fromkeys([leaving.key for leaving in plan.leaving])
        needed = {key for coming in plan.coming for key in coming.definitions}
        for key, sub in self._catalogue.subscriptions.items():
            needed.update(sub.definitions if key not in going and sub.state != "ended" else ())
        running = self._matcher.tasks()
        used = [key for leaving in plan.leaving for key in leaving.definitions]
        ending = [key for key in dict.fromkeys(used) if key not in needed]
        return tuple([running[key].name for key in ending if key in running])

    def activated(self, accepted: Answer) -> Answer | None:
        """Return the answer to an accepted submission once all of it runs; None until then.

        Here the home is the only host, so that what was installed runs. With further hosts this is
        asked again when one of them has reported what it runs.
        """
        mine = [self._catalogue.subscriptions[key] for key in accepted.keys]
        running = [one for one in mine if one.state != "ended"]
        if not all(one.task in self._matcher or one.key in self.elsewhere for one in running):
            return None
        for one in running:
            one.state = "active"
        return replace(accepted, state="active")

    def _checked(self, text: str, checked: Checked | None) -> Specification:
        maximum = self._limits.specification_bytes_max
        if len(text) > maximum or len(text.encode("utf-8", "surrogatepass")) > maximum:
            error = LimitReachedError("specification_bytes_max", maximum, "bytes of a text")
            raise RefusedError(_limited(error))
        if checked is None or checked.text != text:
            checked = check_text(text, functions=self.functions, tables=self._reader)
        if checked.specification is None:
            raise RefusedError(*map(refusals.of_diagnostic, checked.diagnostics))
        return checked.specification

    def _plan(self, plan: TextChange, asker: Asker, now: int) -> TextChange:
        troubles: list[Trouble] = []
        graph = plan.specification.graph
        order = {key: index for index, key in enumerate(graph.tasks)}
        for key in graph.roots:
            node = graph.tasks[key].node
            assert isinstance(node, Subscription)
            if (node.subscriber, node.name) not in plan.keys:
                continue
            before = self._catalogue.subscriptions.get((node.subscriber, node.name))
            if before is not None:
                if before.task == key:
                    continue
                wrong = _replacing(before, node, asker)
                if wrong is not None:
                    troubles.append(wrong)
                    continue
                plan.leaving.append(before)
            needed = _needed(graph, key, order)
            clocks, reach_ms = waiting_on([graph.tasks[name] for name in (*needed, key)])
            plan.coming.append(
                Installed(
                    subscriber=node.subscriber,
                    name=node.name,
                    seq=node.seq,
                    actor=node.actor.name,
                    nearest=node.actor.nearest,
                    task=key,
                    client=asker.client,
                    proven=asker.proven,
                    definitions=needed,
                    declared=plan.declared,
                    since=now,
                    ends=node.until_ms if node.for_ms is None else now + node.for_ms,
                    clocks=clocks,
                    reach_ms=reach_ms,
                )
            )
        if troubles:
            raise RefusedError(*troubles)
        self._check_limits(plan)
        return plan

    def _check_limits(self, plan: TextChange) -> None:
        catalogue, limits = self._catalogue, self._limits
        subscriptions = len(catalogue) + len(plan.coming) - len(plan.leaving)
        needed = {key for one in plan.coming for key in one.definitions}
        definitions = len(catalogue.definitions) + sum(
            key not in catalogue.definitions for key in needed
        )
        for name, what, wanted in (
            ("subscriptions_max", "subscriptions", subscriptions),
            ("definitions_max", "definitions", definitions),
        ):
            maximum: int = getattr(limits, name)
            if wanted > maximum:
                raise RefusedError(_limited(LimitReachedError(name, maximum, what)))
        self._check_effort(plan)

    def _check_effort(self, plan: TextChange) -> None:
        """While a text is installed nothing else happens: not for long."""
        if not plan.coming:
            return
        tasks = plan.specification.graph.tasks
        wanted = {key for one in plan.coming for key in (*one.definitions, one.task)}
        new = [tasks[key] for key in tasks if key in wanted and key not in self._matcher]
        units, maximum = effort(new, plan.types), self._limits.install_effort_max
        if units > maximum:
            what = f"installing this text takes {units:,} units of work, so submit it in parts"
            raise RefusedError(_limited(LimitReachedError("install_effort_max", maximum, what)))

    def _carry_out(self, plan: TextChange, now: int) -> bool:
        """Install what comes, then take away what it replaces; on any error all is as before.

        Return whether any task began with nothing.
        """
        withdrawn = self._declare(plan)
        tasks = plan.specification.graph.tasks
        replaced = {
            before.key: before
            for before in plan.leaving
            if before.key not in self.elsewhere and before.state != "ended"
        }
        running = self.shared if plan.apart else self._joined
        try:
            some_begin = running.run_all(plan.coming, tasks, now, replaced, plan.heirs)
        except BaseException as error:
            self._restore(plan, withdrawn)
            if isinstance(error, LimitReachedError):
                raise RefusedError(_limited(error)) from None
            raise
        for one in plan.leaving:
            self._matcher.remove(one.task)
        # What both need must not stop in between, so all are counted before any is stopped.
        leaving = [(one, *self._catalogue.remove(one)) for one in plan.leaving]
        for one in plan.coming:
            self._catalogue.add(one)
        for one, idle, last in leaving:
            self._settle(one, idle, last=last)
        return some_begin

    def _settle(self, one: Installed, idle: Sequence[str], *, last: bool) -> None:
        """Stop the definitions and take back the declarations that nobody uses any more."""
        self.shared.stop(idle)
        if last and one.declared not in self._catalogue.declared:
            self._take_back(one.declared)

    # --- declarations --------------------------------------------------------------------

    def _check_declarations(self, plan: TextChange) -> None:
        """Refuse what `_declare` would refuse; nothing is declared."""
        if plan.declared in self._declarations or not plan.coming:
            return
        withdrawn = self._catalogue.freed(plan.leaving)
        try:
            self._intake.registry.check(
                plan.types, [self._declarations[declared][0] for declared in withdrawn]
            )
        except (ConflictError, LimitReachedError) as error:
            raise _not_declared(error, plan.specification) from None

    def _declare(self, plan: TextChange) -> list[str]:
        """Declare a specification's types; the declarations that had to go for it.

        Those of the specification that this one replaces as a whole must not stand in its way.
        """
        if plan.declared in self._declarations:
            return []
        withdrawn = self._catalogue.freed(plan.leaving)
        for declared in withdrawn:
            self._intake.release(self._declarations[declared][0])
        first = plan.coming[0]
        owner = f"`{first.name}` (seq {first.seq}) of {first.subscriber}"
        taken = {label for label, _ in self._declarations.values()}
        label, count = owner, 1
        while label in taken:
            count += 1
            label = f"{owner} ({count})"
        try:
            self._intake.declare(plan.types, label)
        except (ConflictError, LimitReachedError) as error:
            self._declare_again(withdrawn)
            raise _not_declared(error, plan.specification) from None
        self._declarations[plan.declared] = (label, plan.types)
        return withdrawn

    def _restore(self, plan: TextChange, withdrawn: Sequence[str]) -> None:
        if plan.declared not in self._catalogue.declared:
            self._take_back(plan.declared)
        self._declare_again(withdrawn)

    def _declare_again(self, withdrawn: Sequence[str]) -> None:
        for declared in withdrawn:
            label, types = self._declarations[declared]
            self._intake.declare(types, label)

    def _take_back(self, declared: str) -> None:
        label, _ = self._declarations.pop(declared)
        self._intake.release(label)

    def begin_anew(self, subs: Sequence[Installed], now: int, *, apart: bool) -> None:
        """Have subscriptions begin as if they came now, but for what a text has kept."""
        if apart:
            self.shared.begin_anew(subs, now, lambda sub, key: key in sub.kept)
        else:
            self._joined.begin_anew(subs, now, self.elsewhere)

    # --- cancelling ----------------------------------------------------------------------

    def asked(self, message: CancelRequested, now: int) -> Answer:
        """End a subscription of the asker's, or have it begin anew."""
        asker = Asker(message.client, message.proven)
        if isinstance(message, ResumeRequested):
            return self._resume(message.name, asker, now, apart=message.apart)
        return self.cancel(message.name, asker)

    def _resume(self, name: str, asker: Asker, now: int, *, apart: bool) -> Answer:
        """Begin a suspended subscription of the asker's anew; `apart`: it alone."""
        try:
            meant = self._meant(name, asker)
            if not meant.suspended:
                raise RefusedError(trouble(refusals.NOT_SUSPENDED, name=f"`{name}`"))
            if apart:
                self.shared.check_room(meant)
        except RefusedError as error:
            return refused(error.troubles)
        except LimitReachedError as error:
            return refused([_limited(error)])
        meant.suspended = ""
        meant.resumed += 1
        (self.shared if apart else self._joined).resume(meant, now)
        self._matcher.suspensions.told = len(self._matcher.suspensions.why)
        return Answer((meant.name,), changed=1)

    def tell_suspended(self, notes: Notes, now: int) -> list[Publication]:
        """Mark the subscriptions whose tasks have been suspended since, and tell of each."""
        suspended = self._matcher.suspensions.why
        self._matcher.suspensions.told = len(suspended)
        return [
            suspend(sub, suspended[sub.task], self._intake.ledger, notes, now)
            for sub in self._catalogue.subscriptions.values()
            if sub.task in suspended and not sub.suspended
        ]

    def cancel(self, name: str, asker: Asker) -> Answer:
        """End a subscription of the asker's."""
        try:
            one = self._meant(name, asker)
        except RefusedError as error:
            return refused(error.troubles)
        self._matcher.remove(one.task)
        idle, last = self._catalogue.remove(one)
        self._settle(one, idle, last=last)
        self.on_cancel(one)
        return Answer((one.name,), changed=1)

    def _meant(self, name: str, asker: Asker) -> Installed:
        """The subscription of the asker's that it means: for itself, else one that it submitted."""
        own = self._catalogue.subscriptions.get((asker.client, name))
        if own is not None:
            return self._spoken_for(own, asker)
        words = {"client": f"`{asker.client}`", "name": f"`{name}`"}
        found = self._catalogue.submitted_by(asker.client, name)
        if not found:
            raise RefusedError(trouble(refusals.UNKNOWN_SUBSCRIPTION, **words))
        if len(found) > 1:
            subscribers = ", ".join(f"`{one.subscriber}`" for one in found)
            raise RefusedError(
                trouble(refusals.AMBIGUOUS, **words, count=len(found), subscribers=subscribers)
            )
        return self._spoken_for(found[0], asker)

    @staticmethod
    def _spoken_for(one: Installed, asker: Asker) -> Installed:
        if not asker.speaks_for(one):
            raise RefusedError(_not_yours(one, asker))
        return one

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> list[list[Any]]:
        """The declarations as plain data, in their order; the catalogue speaks for itself."""
        return [
            [digest_, label, [[one.name, one.attributes, *_lasting(one)] for one in types]]
            for digest_, (label, types) in self._declarations.items()
        ]

    def restore(self, state: Iterable[Any]) -> None:
        """Declare all this, where nothing is declared yet."""
        for digest_, label, types in state:
            declared = [
                EventType(name, dict(attributes), lasts_ms=next(iter(lasting), None))
                for name, attributes, *lasting in types
            ]
            self._intake.declare(declared, label)
            self._declarations[digest_] = (label, declared)

    def check_invariants(self) -> None:
        """Raise AssertionError unless exactly what is needed runs and is declared."""
        catalogue = self._catalogue
        catalogue.check_invariants()
        assert list(self._declarations) == [
            key for key in self._declarations if key in catalogue.declared
        ]
        assert len(self._declarations) == len(catalogue.declared)
        needed: set[str] = set()
        for one in catalogue.subscriptions.values():
            if one.key not in self.elsewhere and one.state != "ended":
                needed.update((*one.uses, one.task))
        for key in needed:
            assert key in self._matcher, f"{key} is needed and does not run"
        assert len(self._matcher) == len(needed)


def _change_of(
    text: str, specification: Specification, only: Iterable[tuple[str, str]] | None = None
) -> TextChange:
    """Return a change that has yet to be compared with what is installed."""
    types = [each for each in specification.event_types.values() if not each.defined]
    rows = [
        [each.name, sorted(each.attributes.items()), *_lasting(each)] for each in _sorted(types)
    ]
    meant = dict.fromkeys(specification.subscriptions if only is None else only)
    keys = {key: None for key in specification.subscriptions if key in meant}
    return TextChange(text, specification, keys, [], [], types, digest("declared", rows))


def _needed(graph: TaskGraph, root: str, order: Mapping[str, int]) -> tuple[str, ...]:
    """The definitions that a task needs, directly or through others, each before its users.

    As `graph.active` tells, without a look at all tasks for each of thousands.
    """
    found: set[str] = set()
    waiting = [root]
    while waiting:
        for need in graph.tasks[waiting.pop()].needs.values():
            if need not in found:
                found.add(need)
                waiting.append(need)
    return tuple(sorted(found, key=order.__getitem__))


def _replacing(before: Installed, node: Subscription, asker: Asker) -> Trouble | None:
    """Why a subscription must not take the place of the one of its name; None if it may."""
    words = {"name": f"`{node.name}`", "subscriber": f"`{node.subscriber}`"}
    if node.seq <= before.seq:
        lower = trouble(
            refusals.LOWER_SEQ, node.span, **words, installed=before.seq, found=node.seq
        )
        return replace(lower, seq=before.seq)
    if not asker.speaks_for(before):
        return _not_yours(before, asker, node.span)
    return None


def _not_yours(one: Installed, asker: Asker, span: Span | None = None) -> Trouble:
    words = {"name": one.name, "subscriber": one.subscriber, "client": asker.client}
    quoted = {word: f"`{value}`" for word, value in words.items()}
    return trouble(refusals.NOT_THE_SUBSCRIBER, span, **quoted)


def _limited(error: LimitReachedError) -> Trouble:
    return trouble(refusals.LIMIT, found=error)


def _declaration_of(type_name: str, specification: Specification) -> Span | None:
    for item in specification.file.items:
        if isinstance(item, EventDeclaration) and item.name == type_name:
            return item.span
    return None


def _sorted(types: list[EventType]) -> list[EventType]:
    return sorted(types, key=lambda one: one.name)


def _not_declared(error: Exception, specification: Specification) -> RefusedError:
    """Return the refusal of declarations that cannot stand beside those that are there."""
    if isinstance(error, LimitReachedError):
        return RefusedError(_limited(error))
    assert isinstance(error, ConflictError)
    span = _declaration_of(error.type_name, specification)
    return RefusedError(trouble(refusals.CONFLICT, span, found=error))


def _lasting(one: EventType) -> list[int]:
    """State how long events of the type last at most; nothing where nothing is declared of it."""
    return [] if one.lasts_ms is None else [one.lasts_ms]
