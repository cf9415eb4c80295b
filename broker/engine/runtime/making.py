"""The choice of an agent: which kind runs a case, and how one takes over from another.

Owns the choice. Must not know who feeds agents. Imports all kinds of agents, so it is imported with
the first task. Invariant: an agent that takes over reports what the other would have, from where
that stopped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from broker.engine.pattern.agent.staged_agent import StagedAgent
from broker.engine.pattern.agent.staged_partition import needs_stages
from broker.engine.pattern.agent.staged_plan import StagedPlan
from broker.engine.pattern.layout.operands import composite
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.engine.runtime.agents import input_name
from broker.engine.runtime.outcome import DefinitionOutcome, reported_layout
from broker.engine.runtime.seats import SUSPENDED, SuspendedAgent
from broker.engine.runtime.subscribed import SubscriptionOutcome, SubscriptionTemplate
from broker.engine.window.agent import TickAgent, TickOutcome, WindowAgent
from broker.engine.window.assigners import grid_of
from language.tree import Atom, Case, Definition, Subscription

if TYPE_CHECKING:
    from broker.engine.event.agent import Agent
    from broker.engine.event.event import Event
    from broker.engine.limits import Limits
    from broker.engine.runtime.agents import Agents
    from broker.engine.runtime.instances import TaskInstance
    from language.taskgraph import Task

LONE_PLANS_MAX = 4_096  # plans of single events that are kept for subscriptions to come


class Maker:
    """Makes the agents of one place; see Agents for what they share."""

    def __init__(self, shared: Agents, limits: Limits) -> None:
        self._shared = shared
        self._limits = limits
        # None of those that only look like single events.
        self._lone_plans: dict[tuple[Case, str], StagedPlan | None] = {}

    def make(self, instance: TaskInstance, case: Case, output: type[Event] | None) -> Agent:
        """The agent of one case; `output` is the class of a definition's events."""
        task = instance.task
        if output is None:
            outcome: Any = SubscriptionOutcome(SubscriptionTemplate(task))
            return self._of_pattern(instance, case, outcome)
        window = task.node.window if isinstance(task.node, Definition) else None
        # Paper 003 (3.3.2): a task forks one agent for each detecting case, and with a window the
        # producing condition is time instead of a final state.
        if window is not None and window.aggregated:
            return WindowAgent(
                task,
                case,
                output,
                groups_max=self._limits.groups_max,
                events_max=self._limits.events_held_max,
                duration_max_ms=self._limits.event_duration_ms_max,
                foresight=self._shared.foresight(task),
                budget=self._shared.budget,
            )
        outcome = DefinitionOutcome(task, case, reported_layout(case), output)
        if window is None:
            return self._of_pattern(instance, case, outcome)
        ticks = grid_of(window)
        assert ticks is not None, "without `aggr` a window is `every`"
        # `every` without an aggregate: the pattern runs as always and what it gives waits for the
        # tick, so that it has one meaning with and without.
        ticking = TickOutcome(outcome)
        inner = self._of_pattern(instance, case, ticking)
        made = {output.event_type: output}
        return TickAgent(inner, ticking, ticks, made, self._limits.events_held_max)

    def _of_pattern(self, instance: TaskInstance, case: Case, outcome: Any) -> StagedAgent:
        lone = self._lone_plan(instance.task, case)
        if lone is not None:
            return self._running(lone, outcome)
        layout = lay_out(case)
        layout.budget = self._shared.budget
        capacity = self._limits.chain_events_max
        return self._staged(instance, case, layout, outcome, capacity=capacity)

    def _lone_plan(self, task: Task, case: Case) -> StagedPlan | None:
        """The plan of a subscription to single events; None of all others.

        The filterer has tested an atom's conditions, so that subscriptions which differ in these
        alone (a thousand thresholds on one type) have one plan.
        """
        node, pattern = task.node, case.detect.pattern
        if not isinstance(node, Subscription) or not isinstance(pattern, Atom):
            return None
        ends = node.for_ms is not None or node.until_ms is not None
        # What counts or weighs its results keeps a plan, and with it a state, of its own.
        if ends or node.at_most is not None or case.detect.maybe_drop:
            return None
        detect = replace(case.detect, pattern=replace(pattern, conditions=()))
        alike = replace(case, detect=detect, assign=())
        key = (alike, input_name(task, pattern.type))
        if key not in self._lone_plans:
            if len(self._lone_plans) >= LONE_PLANS_MAX:
                self._lone_plans.clear()  # those in use stay with their agents
            layout = lay_out(alike)
            layout.budget = self._shared.budget
            plan = StagedPlan(alike, layout, self._shared.foresight(task))
            self._lone_plans[key] = plan if plan.is_lone else None
        return self._lone_plans[key]

    def _staged(
        self, instance: TaskInstance, case: Case, layout: Layout, outcome: Any, *, capacity: int = 0
    ) -> StagedAgent:
        task = instance.task
        subscription = task.node if isinstance(task.node, Subscription) else None
        doubts = needs_stages(case, layout, subscription) or self._weighs(case, layout)
        doubt = self._shared.doubted if doubts else None
        foresight = self._shared.foresight(task)
        plan = StagedPlan(
            _timed(task, case), layout, foresight, subscription, doubt, capacity=capacity
        )
        agent = self._running(plan, outcome)
        if agent.minds_beginning:
            self._shared.begins_with(instance.name, agent)
        return agent

    def _running(self, plan: StagedPlan, outcome: Any) -> StagedAgent:
        return StagedAgent(
            plan,
            outcome,
            self._shared.classes,
            occurrences_max=self._limits.occurrences_held_max,
            groups_max=self._limits.groups_max,
        )

    def _weighs(self, case: Case, layout: Layout) -> bool:
        """Tell whether uncertain times matter to a case at all."""
        if self._shared.doubted is None:
            return False
        root = layout.root
        # A single event without `within` happens when it happens: doubt about its time changes
        # nothing.
        return composite(root) or root.within_ms is not None or case.detect.maybe_drop

    def weighing(self, instance: TaskInstance, case: Case, agent: Agent) -> Agent:
        """An agent that weighs times, where the other has stopped."""
        task = instance.task
        if isinstance(agent, TickAgent):
            agent.inner = self.weighing(instance, case, agent.inner)
            return agent
        if isinstance(agent, StagedAgent) and agent.plan.links is not None:
            if not self._weighs(case, agent.plan.layout):
                return agent
            plan = StagedPlan(_timed(task, case), agent.plan.layout, self._shared.foresight(task))
            unlimited = self._running(plan, agent.outcome)
            agent.hand_over(unlimited)
            agent = unlimited
        if isinstance(agent, StagedAgent) and (
            not agent.plan.is_plain or self._weighs(case, agent.plan.layout)
        ):
            self._shared.replaced(instance.name, agent)
            made = self._staged(instance, case, agent.plan.layout, agent.outcome)
            # Through the snapshot: how an agent is taken over is then what recovery does every day,
            # and not a second way.
            made.restore(agent.state())
            return made
        return agent

    def restored(self, instance: TaskInstance, case: Case, agent: Agent, state: Any) -> Agent:
        """The agent in a state, also in that of one that did not weigh times, or had a limit."""
        # A suspension outlasts a restart: it ends by `resume` alone, as what the agent held is
        # gone.
        if SUSPENDED in state:
            return SuspendedAgent(state[SUSPENDED])
        if isinstance(agent, StagedAgent) and agent.plan.links is None and "chain" in state:
            plan = StagedPlan(
                _timed(instance.task, case),
                agent.plan.layout,
                self._shared.foresight(instance.task),
                capacity=self._limits.chain_events_max or self._limits.occurrences_held_max,
            )
            chain = self._running(plan, agent.outcome)
            chain.restore(state)
            return self.weighing(instance, case, chain)
        agent.restore(state)
        return agent


def _timed(task: Task, case: Case) -> Case:
    """The case with what it assigns to events' times: in a subscription that is a value only."""
    return case if task.kind == "definition" else replace(case, assign=())
