"""What a host has to tell homes of the rates of what runs here.

Owns these words. Must not know links. Invariant: what a home knows already is not told.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.core.coordinator.known import Known
from broker.core.coordinator.metering import Counts, Metering, Rates
from broker.core.coordinator.statement import Measured, Piece


def measured(
    metering: Metering, counts: Mapping[Piece, Counts], known: Known, me: str, now: int
) -> list[Measured]:
    """The words to homes, from counts as they stand."""
    told: dict[Piece, Rates] = {}
    for home, statement in known.statements.items():
        for one in statement.submissions:
            if (home, one.key) in counts:
                rates, sends = known.rates(home, one)
                told[home, one.key] = Rates(dict(zip(one.inputs, rates, strict=True)), sends)
    found = []
    for (home, key), fresh in metering.look(counts, told, now).items():
        by_origin: dict[str, dict[str, int]] = {}
        for (origin, type_name), rate in fresh.inputs.items():
            by_origin.setdefault(origin, {})[type_name] = rate
        found.append(Measured(home, me, key, by_origin, fresh.sends))
    return found


def rates_of(word: Measured) -> Rates:
    """Return the rates that such a word states."""
    inputs = {
        (origin, type_name): rate
        for origin, some in word.rates.items()
        for type_name, rate in some.items()
    }
    return Rates(inputs, word.sends)
