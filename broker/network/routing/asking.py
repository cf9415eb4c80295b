"""What one neighbour has been asked for, and on whose behalf.

Owns the operators of one link at the side that asks. Must not know events or other neighbours.
Invariant: what was sent, taken together, asks for all that is wanted; each operator is sent at most
once as long as it stays the same.
"""

from __future__ import annotations

import msgspec

from broker.engine.event.identity import digest
from broker.network.routing.advertisement.messages import Unwant, Want
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.covering.covering import Check, Sampler
from broker.network.routing.covering.covers import Covers

Owner = tuple[str, str]  # where an operator came from, its id


class Asking:
    """The operators wanted of one neighbour; `check` finds those that need not be sent.

    Equal operators have one id wherever they are made, and each way leaves of them what its
    neighbours can send. So those of one id that come from several directions may differ: then each
    is sent under a name of its own.
    """

    def __init__(self, check: Check, sampler: Sampler | None = None) -> None:
        self._covers = Covers(check, sampler)
        self._owners: dict[str, dict[Owner, None]] = {}  # by the name that was sent
        self._names: dict[tuple[Owner, str], str] = {}  # where that is not the operator's id

    def wanted(self) -> list[tuple[Operator, tuple[str, ...]]]:
        """Return what is wanted of the neighbour, each with the ids of those that cover it."""
        return [(self._covers.get(name), self._covers.coverers(name)) for name in self._owners]

    def want(self, owner: Owner, operator: Operator) -> list[Want | Unwant]:
        """Want an operator in place of the owner's one of its id; return what is to be told."""
        name = self._names.get((owner, operator.id), operator.id)
        operator_id, operator = operator.id, _named(operator, name)
        owners = self._owners.get(name, {})
        is_alone = not owners or list(owners) == [owner]
        if is_alone or self._covers.get(name) == operator:
            return self._put(owner, operator)
        # Others want under this name what was sent, and go on wanting it.
        named = _named(operator, digest("operator", [operator_id, *owner]))
        messages = self._put(owner, named)
        if owner in owners:
            messages += self.release(owner, operator_id)
        self._names[owner, operator_id] = named.id
        return messages

    def _put(self, owner: Owner, operator: Operator) -> list[Want | Unwant]:
        owners = self._owners.get(operator.id)
        if owners is None:
            self._owners[operator.id] = {owner: None}
            return [] if self._covers.add(operator) else [Want(operator)]
        owners[owner] = None
        if self._covers.get(operator.id) == operator:
            return []
        was_sent = not self._covers.covered(operator.id)
        covered, bare = self._covers.replace(operator)
        messages: list[Want | Unwant] = [Want(each) for each in bare]
        if not covered:
            return [Want(operator), *messages]
        return [*messages, Unwant(operator.id)] if was_sent else messages

    def release(self, owner: Owner, operator_id: str) -> list[Want | Unwant]:
        """Want an operator no longer for one owner; what the neighbour must be told."""
        name = self._names.pop((owner, operator_id), operator_id)
        owners = self._owners[name]
        del owners[owner]
        if owners:
            return []
        del self._owners[name]
        if self._covers.covered(name):
            self._covers.remove(name)
            return []
        bare = self._covers.remove(name)
        return [*(Want(each, covered=True) for each in bare), Unwant(name)]


def _named(operator: Operator, name: str) -> Operator:
    return operator if operator.id == name else msgspec.structs.replace(operator, id=name)
