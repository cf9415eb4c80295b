"""The bench of durability measures acknowledgements, stored rows and recovered events."""

import asyncio

import pytest

from bench import durable
from bench.acks import AckLoad, measure
from bench.report import Options
from bench.servers import broker
from broker.core.broker import BrokerOptions
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.journal import read
from language import check_text


def test_a_load_is_acknowledged_as_a_whole_and_a_slow_disk_shows():
    load = AckLoad(seconds=0.3, publishers=4, inflight=5)
    with broker(durable.HOT, settings={"journal.sync_delay_ms": "30"}) as server:
        closed = measure(server.port, load)
        paced = measure(server.port, AckLoad(seconds=0.3, rate=200.0, run=1))
    assert closed.messages >= 20
    assert 30_000 <= closed.p50_us <= closed.p99_us
    assert 20 <= paced.messages <= 61  # fewer only where the machine is too busy to send them
    assert paced.p50_us >= 30_000
    assert paced.seconds >= 0.3


def test_the_specifications_are_sound():
    for text in (durable.HOT, durable.STATEFUL):
        assert check_text(text).diagnostics == ()


def test_rows_are_stored_and_counted(tmp_path):
    assert asyncio.run(durable.rows_per_second(str(tmp_path), 200, 10)) > 0


def test_what_is_recovered_is_all_that_was_told(tmp_path):
    size, results = asyncio.run(durable.journal_of(tmp_path, durable.STATEFUL, 500))
    assert size == sum(path.stat().st_size for path in tmp_path.iterdir())
    found = read(tmp_path)
    records = found.records()
    core, _ = DurableBroker.recover(
        BrokerOptions(), Limits(), None, records, results, durable.BASE_MS
    )
    assert core.ledger.events.received == 500
    assert core.ledger.events.dropped_count == 0
    assert 50 < core.outbox_end == results


@pytest.mark.program("mosquitto")
def test_ratios_are_to_mosquitto_in_the_same_round(monkeypatch):
    chosen = [durable.ways()[0], durable.ways()[4]]
    monkeypatch.setattr(durable, "ways", lambda: chosen)
    found = durable.acknowledged(Options(quick=True))
    rows = durable.rates_table(found).rows
    assert rows[0][2] == "1.00"
    assert float(rows[1][2]) > 0
    assert len(rows[0]) == len(durable.rates_table(found).columns)
    none = durable.rates_table([(way, None) for way in chosen]).rows
    assert {cell for row in none for cell in row[1:]} == {"-"}
