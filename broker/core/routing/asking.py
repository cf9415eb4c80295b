"""What one neighbour has been asked for, and on whose behalf.

Owns the operators of one link at the side that asks. Must not know events or other neighbours.
Invariant: what was sent, taken together, asks for all that is wanted; each operator is sent at most
once as long as it stays the same.
"""

from __future__ import annotations

from broker.core.routing.covering import POINTS, Check
from broker.core.routing.covers import Covers
from broker.core.routing.messages import Unwant, Want
from broker.core.routing.operator import Operator

Owner = tuple[str, str]  # where an operator came from, its id


class Asking:
    """The operators wanted of one neighbour; `check` finds those that need not be sent."""

    def __init__(self, check: Check, points: int = POINTS) -> None:
        self._covers = Covers(check, points)
        self._owners: dict[str, dict[Owner, None]] = {}

    def sent(self) -> list[Operator]:
        """Return what the neighbour has been asked for."""
        return self._covers.uncovered()

    def want(self, owner: Owner, operator: Operator) -> list[Want | Unwant]:
        """Want an operator, in the place of the one of its id; what the neighbour must be told."""
        owners = self._owners.get(operator.id)
        if owners is None:
            self._owners[operator.id] = {owner: None}
            return [] if self._covers.add(operator) else [Want(operator)]
        owners[owner] = None
        if self._covers.get(operator.id) == operator:
            return []
        was_sent = not self._covers.covered(operator.id)
        covered, bare = self._covers.replace(operator)
        told: list[Want | Unwant] = [Want(each) for each in bare]
        if not covered:
            return [Want(operator), *told]
        return [*told, Unwant(operator.id)] if was_sent else told

    def release(self, owner: Owner, name: str) -> list[Want | Unwant]:
        """Want an operator no longer for one owner; what the neighbour must be told."""
        owners = self._owners[name]
        del owners[owner]
        if owners:
            return []
        del self._owners[name]
        if self._covers.covered(name):
            self._covers.remove(name)
            return []
        return [*(Want(each) for each in self._covers.remove(name)), Unwant(name)]
