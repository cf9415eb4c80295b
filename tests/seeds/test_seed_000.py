"""Saleh: the modes of figures 4 and 5 on the paper's own sequences of tuples."""

from __future__ import annotations

import headwater
from broker.core.intake import Intake, IntakeOptions
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import check_text

DECLARED = "event A(n: text) event B(n: text) event C(n: text) event D(n: text)"


def found(detect: str, letters: str) -> list[str]:
    """The names of what each result binds, in the order of the places."""
    engine = headwater.Engine(
        f"{DECLARED} subscription S seq 1 from me to alerts {detect}", lateness_ms=None
    )
    engine.push(
        {"type": name[0].upper(), "id": name, "timestamp": int(name[1:]) * 1000, "n": name}
        for name in letters.split()
    )
    return sorted(
        " ".join(result["values"][place]["n"] for place in "ABCD" if place in result["values"])
        for result in engine.finish()
    )


def test_figure_4_unrestricted_gives_every_combination() -> None:
    """Figure 4: SEQ(A, B+, D) within 6; its B+ reports one B per match, so B here."""
    trace = "a1 b2 a3 c4 c5 b6 d7"
    expected = ["a1 b2 d7", "a1 b6 d7", "a3 b6 d7"]
    assert found("detect A then B then D within 6 s", trace) == expected


def test_figure_5_first_takes_the_earliest_of_each() -> None:
    """Figure 5, upper part: SEQ(A, B+, C+, D) within 6 in FIRST mode."""
    pattern = "detect[first] A then B then C then D within 6 s"
    assert found(pattern, "a1 a2 b3 c4 c5 b6 d7") == ["a1 b3 c4 d7"]


def test_figure_5_recent_takes_the_newest_in_a_row() -> None:
    """Figure 5, lower part: the paper's RECENT is `latest`; b6 comes after the row of C began."""
    pattern = "detect[latest] A then B then C then D within 6 s"
    assert found(pattern, "a1 a2 b3 c4 c5 b6 d7") == ["a2 b3 c5 d7"]


def chain(capacity: int, letters: str) -> tuple[list[str], list[str], list[str]]:
    """Of figure 4's pattern: what is stored after each event, the runs' paths, the results."""
    text = f"{DECLARED} subscription S seq 1 from me to alerts detect A then B then D within 6 s"
    specification = check_text(text).demand()
    matcher = Matcher(Limits(chain_events_max=capacity))
    intake = Intake(IntakeOptions(), Limits())
    intake.declare(list(specification.event_types.values()))
    for task in specification.graph.tasks.values():
        matcher.install(task)
    (seat,) = matcher._seats.values()
    stored, paths, found = [], [], []
    for name in letters.split():
        at = int(name[1:]) * 1000
        event = {"type": name[0].upper(), "id": name, "timestamp": at, "n": name}
        results = in_one_go(matcher.push(intake.from_mappings([event]).events, lambda _, at=at: at))
        bound = [result.to_dict()["events"].values() for result in results]
        found += [" ".join(one for ids in places for one in ids) for places in bound]
        held = [one for own in seat.agent._patience.store.groups.values() for one in own]
        stored.append(" ".join(one.event.id for one in held))
        starts = [one.event for one in held if one.place == 0]
        followers = [one.event for one in held if one.place == 1]
        paths.append(
            "; ".join(
                " ".join([s.id, *(f"({f.id})" for f in followers if f.end > s.end)]) for s in starts
            )
        )
    return stored, paths, sorted(found)


def test_figure_4_step_by_step_registers_events_and_grows_runs() -> None:
    """Figure 4: each start begins a run of its own, each b continues all that have begun.

    c4 and c5 fit no transition and are rejected; d7 reaches the accepting state.
    """
    stored, paths, found = chain(10, "a1 b2 a3 c4 c5 b6 d7")
    assert stored == [
        "a1",
        "a1 b2",
        "a1 b2 a3",
        "a1 b2 a3",
        "a1 b2 a3",
        "a1 b2 a3 b6",
        "a1 b2 a3 b6",
    ]
    assert paths[:3] == ["a1", "a1 (b2)", "a1 (b2); a3"]
    assert paths[-1] == "a1 (b2) (b6); a3 (b6)"
    assert found == ["a1 b2 d7", "a1 b6 d7", "a3 b6 d7"]


def test_section_6_3_deletes_runs_whose_time_has_passed() -> None:
    """Step 4 of the scan: after 6 time units a1's run cannot go on, and takes b2 with it."""
    stored, paths, found = chain(10, "a1 b2 a3 b6 a8 d9")
    assert stored[-2:] == ["a3 b6 a8", "a3 b6 a8"]
    assert paths[-1] == "a3 (b6); a8"
    assert found == ["a3 b6 d9"]


def test_section_6_3_overwrites_the_newest_of_the_first_sequence() -> None:
    """On figure 4's stream with room for three events b6 takes the place of b2."""
    stored, _, found = chain(3, "a1 b2 a3 c4 c5 b6 d7")
    assert stored[-1] == "a1 a3 b6"
    assert found == ["a1 b6 d7", "a3 b6 d7"]


def test_section_6_3_ends_the_first_sequence_when_its_initial_event_is_replaced() -> None:
    """With room for two, b6 finds nothing but a1 left of the first sequence, which ends."""
    stored, _, found = chain(2, "a1 a3 c4 b6 d7")
    assert stored == ["a1", "a1 a3", "a1 a3", "a3 b6", "a3 b6"]
    assert found == ["a3 b6 d7"]


def test_section_6_3_first_and_recent_hold_one_sequence() -> None:
    """The advantage named of both modes: no more events than places, however many come."""
    letters = " ".join(f"{draw}{at}" for at, draw in enumerate("aabbcabcbbaacbc" * 4, 1))
    for mode in ("first", "latest"):
        text = f"detect[{mode}] A then B then C then D within 6 s"
        engine = headwater.Engine(f"{DECLARED} subscription S seq 1 from me to alerts {text}")
        most = 0
        for name in letters.split():
            at = int(name[1:]) * 1000
            engine.push([{"type": name[0].upper(), "id": name, "timestamp": at, "n": name}])
            most = max(most, engine._pipeline.matcher.held())
        # Besides the run: the events of the last 6 s, should the run end and another begin.
        assert 3 <= most <= 3 + 7
