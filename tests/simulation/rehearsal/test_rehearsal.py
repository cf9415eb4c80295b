"""A described network with a recording: the results of one engine, whatever fails meanwhile."""

import json

import pytest

from broker.core.network.event_relay import TICK_MS_MAX
from broker.engine.ingest.network_clocks import NetworkClocks
from broker.network.overlay.kinds import table_of
from broker.network.replication.progress import ASK_AGAIN_MS
from planner.problem import ProblemError
from simulation.rehearsal.material import Material, MaterialError, located, texts_by_home
from simulation.rehearsal.network import read_rehearsed
from simulation.rehearsal.run import SETTLE_MS, rehearse
from simulation.rehearsal.site import RehearsalSite
from tests.simulation.rehearsal.small import (
    FIRST_MS,
    NETWORK,
    beside_engine,
    in_a_line,
    material,
    recorded,
    with_faults,
)


@pytest.fixture(scope="module")
def small() -> Material:
    return material()


@pytest.fixture(scope="module")
def plain(small):
    return rehearse(small)


def test_without_faults_the_results_are_those_of_one_engine_at_their_homes(small, plain):
    found = beside_engine(small, plain)
    assert found.equal
    assert all(one.expected >= 5 for one in found.subscriptions.values())
    assert {key: one.broker for key, one in found.subscriptions.items()} == {
        ("team", "Cold"): "west",
        ("team", "Chill"): "mid",
        ("team", "Means"): "east",
    }
    assert {one.broker for one in plain.detected} == {"west", "mid", "east"}
    assert set(found.actors) == {("alarm", "east"), ("board 1", "west")}
    assert plain.unsettled == []


def test_the_same_material_and_faults_give_the_same_run(small):
    asked = (("cut", "east-mid@+30s+40s"), ("end", "mid@+80s+20s"))
    runs = [with_faults(small, *asked) for _ in range(2)]
    assert runs[0] == runs[1]


FAULTS = {
    "cut": [("cut", "east-mid@+30s+40s")],
    "end of a home": [("end", "mid@+50s+30s")],
    "end where events enter": [("end", "east@+40s+50s")],
    "slow": [("slow", "mid-west@+20s+60s:2s")],
    "all": [
        ("cut", "mid-west@+20s+30s"),
        ("end", "west@+60s+20s"),
        ("slow", "east-mid@+10s+100s:700ms"),
    ],
}


@pytest.mark.parametrize("asked", FAULTS.values(), ids=FAULTS)
def test_faults_make_results_later_and_nothing_else(small, plain, asked):
    outcome = with_faults(small, *asked)
    found = beside_engine(small, outcome, plain)
    assert found.equal, found
    assert outcome.unsettled == []
    later = [one.later for one in found.subscriptions.values()]
    assert all(one is not None for one in later)
    assert max(one.count for one in later) > 0
    assert sum(one.ends for one in outcome.brokers.values()) == sum(
        kind == "end" for kind, _ in asked
    )


def test_what_comes_behind_a_cut_link_comes_when_it_is_over(small, plain):
    """East is cut off from 30 to 70 s: what it needs of west waits until then, and no longer."""
    outcome = with_faults(small, ("cut", "east-mid@+30s+40s"))
    begin_ms = small.first_ms + 30_000
    over_ms = begin_ms + 40_000
    delays = beside_engine(small, outcome, plain).delays
    assert all(later_ms <= 100 for at_ms, later_ms in delays if at_ms < begin_ms)
    assert all(later_ms <= 41_000 for _, later_ms in delays)
    waited = [at_ms for at_ms, later_ms in delays if later_ms > 100]
    assert waited
    assert all(over_ms <= at_ms for at_ms in waited)
    assert outcome.brokers["west"].retained_most > plain.brokers["west"].retained_most
    parts = range(begin_ms // outcome.part_ms + 1, over_ms // outcome.part_ms)
    for pair in (("east", "mid"), ("mid", "east")):
        assert not set(parts) & outcome.links[pair].series.keys()
        assert set(parts) & plain.links[pair].series.keys()


def test_a_withdrawal_is_decided_in_few_passes(small, monkeypatch):
    """Also where other origins are still waited for, so that passing over moves nothing."""
    passes = []
    pass_over = NetworkClocks.pass_over

    def counted(self, due, now):
        passes.append(now)
        return pass_over(self, due, now)

    monkeypatch.setattr(NetworkClocks, "pass_over", counted)
    rehearse(small)
    assert 0 < len(passes) < 100


def test_a_result_that_is_lost_or_doubled_is_seen(small, monkeypatch):
    delivered = RehearsalSite.delivered
    monkeypatch.setattr(RehearsalSite, "delivered", lambda self, rows: delivered(self, rows[1:]))
    found = beside_engine(small, rehearse(small))
    assert not found.equal
    assert any(one.missing for one in found.subscriptions.values())
    monkeypatch.setattr(RehearsalSite, "delivered", lambda self, rows: delivered(self, rows + rows))
    found = beside_engine(small, rehearse(small))
    assert not found.equal
    assert all(one.twice == one.expected for one in found.subscriptions.values())


def test_what_is_counted_of_links_and_brokers(small, plain):
    """West needs all Temp (Cold there), mid all that Chill takes, east all Temp."""
    east = [one for one in small.events if one["source"] in {"t1", "w1"}]
    cold = [one for one in east if one["type"] == "Temp" and one["val"] < 6]
    windy = [one for one in east if one["type"] == "Wind" and one["val"] > 4]
    assert plain.links["east", "mid"].events == len(cold) + len(windy)
    below = [one for one in cold if one["val"] < 3]
    assert plain.links["mid", "west"].events == len(below)
    for carried in plain.links.values():
        assert carried.size_bytes > carried.content_bytes
        assert sum(carried.series.values()) == carried.size_bytes
        assert (carried.events_bytes > 0) == (carried.events > 0)
    alarms = [one for one in plain.detected if one.row.actor == "alarm"]
    assert plain.links["mid", "east"].results == len(alarms)  # of west and of mid
    assert not any(one.ends for one in plain.brokers.values())
    assert plain.brokers["mid"].held_most > 0


def test_each_home_gets_its_own_subscriptions(small):
    texts = texts_by_home(small.specification, small.network)
    assert list(texts) == ["west", "mid", "east"]
    assert "Cold" in texts["west"]
    assert "Chill" not in texts["west"]
    assert all("define Mean" in text for text in texts.values())


REFUSED = [
    ({"nodes": []}, "nodes"),
    ({"links": [{"a": "east", "b": "mid"}]}, "no way leads from east to west"),
    ({"links": [{"a": "east", "b": "mid", "delay_ms": 0.5}]}, "links[0].delay_ms"),
    ({"links": [{"a": "east", "b": "mid", "delay_ms": -1}]}, "links[0].delay_ms"),
    ({"entry": "nowhere"}, "entry"),
    ({"sources": [{"source": "t1", "broker": "nowhere"}]}, "sources[0].broker"),
    (
        {"sources": [{"source": "t1", "broker": "east"}, {"source": "t1", "broker": "mid"}]},
        "sources[1].broker",
    ),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_a_network_that_cannot_be_is_refused_with_the_key(change, said):
    with pytest.raises(ProblemError) as raised:
        read_rehearsed({**NETWORK, **change})
    assert said in str(raised.value)


def test_a_source_that_enters_nowhere_is_refused():
    events = [{"type": "Temp", "id": "e", "timestamp": FIRST_MS, "val": 1.0}]
    network = read_rehearsed(NETWORK)
    with pytest.raises(MaterialError, match="has no source"):
        located(events, network)
    with pytest.raises(ProblemError, match="sources: no broker is told for the source t7"):
        located([{**events[0], "source": "t7"}], network)
    anywhere = read_rehearsed({**NETWORK, "entry": "mid"})
    assert located([{**events[0], "source": "t7"}], anywhere)[0]["source"] == "t7"
    with pytest.raises(MaterialError, match="no event is of a type"):
        located([], network)


def test_a_described_source_supplies_the_location(small):
    by_source = {one["source"]: one.get("location") for one in small.events}
    assert by_source == {"t1": "yard", "t2": "roof", "w1": None, "w2": None}
    said = {**recorded()[0], "location": "own"}
    assert located([said], small.network)[0]["location"] == "own"


def test_results_are_written_as_a_replay_writes_them(small, plain):
    found = beside_engine(small, plain)
    said = [json.loads(line) for line in found.lines]
    assert len(said) == len(plain.detected)
    assert all("detected_at" not in one for one in said)


@pytest.mark.parametrize(("nodes", "seed"), [(5, 1), (5, 20), (6, 4)])
def test_results_that_end_last_come_and_soon_when_all_sources_have_gone(nodes, seed):
    text, one = in_a_line(nodes, seed)
    outcome = rehearse(one)
    found = beside_engine(one, outcome, text=text)
    assert not outcome.unsettled
    assert found.equal
    assert outcome.detected
    # The sources go at the first settling, each broker says so with a tick, and a question that
    # went by what was not known yet is asked again.
    last_ms = max(each.at_ms for each in outcome.detected)
    assert last_ms - one.last_ms <= SETTLE_MS + 2 * TICK_MS_MAX + ASK_AGAIN_MS


def test_what_the_withdrawal_takes_is_counted_apart(small, plain):
    """The two together are all that went over links."""
    links = table_of([carried.kinds for carried in plain.links.values()])
    for count in ("messages", "bytes"):
        counted, withdrawn, whole = (
            sum(row[count] for row in kinds.values())
            for kinds in (links, plain.withdrawal, plain.kinds[2])
        )
        assert withdrawn > 0
        assert counted + withdrawn == whole
    assert sum(carried.size_bytes for carried in plain.links.values()) == sum(
        row["bytes"] for row in links.values()
    )
    # Who has no source any more says so; nothing is sent that was measured.
    assert plain.withdrawal["advertisements"]["messages"] > 0
    assert plain.withdrawal.get("events", {"messages": 0})["messages"] == 0
