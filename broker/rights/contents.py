"""Submitted texts against the quotas of who submits them: how many, and how much they may hold.

Owns these two questions. Must not know how a text is checked or installed. Invariants: a text is
refused whole, with the sentence that names the quota; one that is installed already as it is
changes nothing, so it is refused nothing. The core is not asked: it judges what its journal brings
back, too, and that was admitted under the quotas of its day.
"""

from collections.abc import Iterable
from typing import Protocol

from broker.core import refusals
from broker.core.refusals import Trouble, trouble
from broker.engine.limits import Limits
from broker.rights.judge import Principal
from broker.rights.table import Quota
from language import Specification
from language.tree import Subscription


class InstalledText(Protocol):
    """A subscription at home here: its key, its task's, and who submitted it."""

    @property
    def key(self) -> tuple[str, str]:
        """Return subscriber and name."""

    @property
    def task(self) -> str:
        """Return the key of its task."""

    @property
    def client(self) -> str:
        """Return who submitted it first."""


def beyond_quota(
    asker: Principal,
    text: Specification,
    installed: Iterable[InstalledText],
    quota: Quota,
    limits: Limits,
) -> list[Trouble]:
    """Return why `quota`, the asker's, or `limits` forbid to install a checked text, if they do."""
    tasks = text.graph.tasks
    running = {content.key: content for content in installed}
    coming: dict[str, tuple[str, str]] = {}
    for root in text.graph.roots:
        node = tasks[root].node
        assert isinstance(node, Subscription)
        content = running.get((node.subscriber, node.name))
        if content is None or content.task != root:
            coming[root] = (node.subscriber, node.name)
    if not coming:
        return []
    if asker.user is not None and quota.contents is not None:
        mine = {content.key for content in running.values() if content.client == asker.user}
        count = len(mine.union(coming.values()))
        if count > quota.contents:
            what = f"`{asker.user}` would have {count} subscriptions installed"
            span = tasks[next(iter(coming))].node.span
            return [trouble(refusals.QUOTA, span, found=what, count=quota.contents)]
    # The quota is for who has a name; where nobody has one, all is open but for the broker's limit.
    if quota.unbounded if asker.user is not None else limits.unbounded_allowed:
        return []
    return _unbounded(text, list(coming), limits)


def _unbounded(text: Specification, roots: list[str], limits: Limits) -> list[Trouble]:
    """Name what holds more the longer it runs, up to a limit that is everybody's."""
    from broker.engine.pattern.bounds.bounds import unbounded

    keys = {*roots, *text.graph.active(roots)}
    return [
        trouble(refusals.UNBOUNDED, task.node.span, name=f"`{task.name}`", why=why)
        for task, why in unbounded(text.graph, limits)
        if task.key in keys
    ]
