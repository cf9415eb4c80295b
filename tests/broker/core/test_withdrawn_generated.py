"""What waited for a source that is withdrawn is decided in few steps, whatever waits for good.

Owns generated specifications in a broker whose sources end one after the other. What the results
are is held to the reference elsewhere (test_engine_streams.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.core.intake import Intake
from broker.core.messages import SourceWithdrawn
from tests.broker.core.machine import NOW, Machine
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.render import text_of
from tests.streams import Events, end_of

CONSTRUCTS = [name for name in CONSTRUCTS_WHOLE if name != "tables"]  # a text brings no files
PASSES_EACH = 5  # for each event: that it came, and each of the bounds that it began


def sent(machine: Machine, events: Events) -> list[str]:
    """Send the events as they end, each type by its own source; the sources."""
    first = min(map(end_of, events))
    for event in sorted(events, key=end_of):
        moved = {
            key: event[key] - first + NOW for key in ("timestamp", "start", "end") if key in event
        }
        source = f"of-{event['type']}"
        made = {key: value for key, value in event.items() if key != "type"}
        machine.now = max(machine.now, end_of(moved))
        machine.send(made | moved | {"source": source}, type_name=event["type"], source=source)
    return sorted({f"of-{event['type']}" for event in events})


@pytest.mark.parametrize("left", [0, 1])
def test_a_source_that_is_withdrawn_takes_few_steps(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`left` of the sources stay, so that something is held for good."""
    passes = 0
    passed_over = Intake.pass_over

    def counted(*arguments: Any) -> bool:
        nonlocal passes
        passes += 1
        assert passes <= most, "it is woken for nothing"
        return passed_over(*arguments)

    monkeypatch.setattr(Intake, "pass_over", counted)
    for number, construct in enumerate(CONSTRUCTS):
        spec, events = random_case(3, construct, CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)])
        if not events:
            continue
        machine = Machine(lateness_ms=0)
        assert machine.submit(text_of(spec))["ok"]
        most = PASSES_EACH * len(events)
        for source in sent(machine, events)[left:]:
            passes = 0
            machine.tell(SourceWithdrawn(source))
