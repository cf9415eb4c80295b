"""Requests about subscriptions: what a text means, judged before it is installed.

Owns the question of each name, type and actor of a text, and on whose behalf a subscription ends.
Must not know how a text is checked or installed. Invariant: a text of which any part is not granted
is refused whole, with every part named.
"""

from collections.abc import Iterable
from typing import Protocol

from broker.core import refusals
from broker.core.refusals import Trouble, trouble
from broker.rights.judge import Principal, RightsJudge
from language import Specification
from language.tree import Span, Subscription


class InstalledName(Protocol):
    """A subscription at home here, by its names."""

    @property
    def name(self) -> str:
        """Return its own name."""

    @property
    def subscriber(self) -> str:
        """Return the name behind `from`."""


def troubles(
    judge: RightsJudge, asker: Principal, text: Specification, only: tuple[str, str] | None = None
) -> list[Trouble]:
    """Return what of a checked text the asker may not do, with its places; empty: nothing.

    `only`: look at the subscription of this subscriber and name alone.
    """
    if judge.table.is_open:
        return []
    listed: list[Trouble] = []
    tasks = text.graph.tasks
    inputs = {
        key: [name for name in task.inputs if name not in task.needs] for key, task in tasks.items()
    }
    for key in text.graph.roots:
        node = tasks[key].node
        assert isinstance(node, Subscription)
        if only is not None and only != (node.subscriber, node.name):
            continue
        span, name = node.span, node.subscriber
        # The nearest of some actors is any of those below the name.
        actor = f"{node.actor.name}/" if node.actor.nearest else node.actor.name
        if not judge.may_submit_as(asker, name):
            listed.append(not_granted(asker, f"submit in the name of `{name}`", "submit_as", span))
        if not judge.may_drive(asker, actor):
            listed.append(not_granted(asker, f"drive the actor `{node.actor.name}`", "drive", span))
        # Definitions are looked through: what they read, the subscription reads.
        for needed in (key, *text.graph.active([key])):
            for type_name in inputs[needed]:
                if not judge.may_read(asker, type_name):
                    place = tasks[needed].node.span
                    words = f"read events of the type `{type_name}`"
                    listed.append(not_granted(asker, words, "read_types", place))
    return list(dict.fromkeys(listed))


def speaker_for(
    judge: RightsJudge, asker: Principal, client: str, name: str, installed: Iterable[InstalledName]
) -> str:
    """Return the name as which `asker` ends the subscription `name`: `client`, unless others' is
    meant and the asker may end it.
    """
    if judge.table.is_open:
        return client
    named = [item.subscriber for item in installed if item.name == name]
    if client in named:
        return client
    may = [
        subscriber
        for subscriber in named
        if judge.allows(asker, "cancel_any") or judge.may_submit_as(asker, subscriber)
    ]
    return may[0] if len(may) == 1 else client


def not_granted(asker: Principal, what: str, key: str, span: Span | None = None) -> Trouble:
    """Return the refusal of `what`, which `key` of a role would grant."""
    who = f"`{asker.user}`" if asker.user else "a client without a name"
    return trouble(refusals.NOT_GRANTED, span, client=who, what=what, key=f"`{key}`")
