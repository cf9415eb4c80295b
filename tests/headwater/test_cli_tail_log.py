"""`headwater tail --from`: the log of a real database behind the real HTTP face."""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.http import listen, log_handlers, make_app
from broker.store import RESULTS, Outbox, Retention, Store
from headwater.cli import main
from tests.broker.http.fakes import OPEN, FakeBroker
from tests.broker.rows import row_of

PATIENCE_S = 10


class LogThread:
    """A broker's log in a thread with a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self.outbox: Outbox
        self._folder = folder
        self._started = threading.Event()
        self._waits = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        store = Store.open(f"sqlite:///{self._folder / 'headwater.db'}", parts=[RESULTS])
        self.outbox = await Outbox.open(store, Retention(age_ms_max=1000))
        beyond = self.outbox.beyond

        async def noted(after: int) -> None:
            self._waits.set()
            await beyond(after)

        self.outbox.beyond = noted  # type: ignore[method-assign]
        broker = FakeBroker()
        broker.installed = {"Frost": "cli", "Heat": "cli"}
        listener = await listen(make_app(broker, OPEN, log=self.outbox), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.port}"
        self._started.set()
        await self._end.wait()
        await listener.close()
        await store.close()

    def add(self, *results: tuple[str, int], now_ms: int = 0) -> None:
        """Results of these subscriptions with these ends, durable on return."""

        async def stored() -> None:
            at, rows = self.outbox.end, []
            for offset, (name, end_ms) in enumerate(results, at):
                told = {"subscription": name, "id": f"r-{offset}", "end": end_ms, "values": {}}
                payload = json.dumps(told).encode()
                rows.append(row_of(offset, name, "cli", "me", payload))
            future = self._loop.create_future()
            self.outbox.append(rows, now_ms, future.set_result)
            assert await future is None

        asyncio.run_coroutine_threadsafe(stored(), self._loop).result(PATIENCE_S)

    def take_old(self, now_ms: int) -> None:
        async def taken() -> None:
            self.outbox.retain(now_ms)
            await self.outbox.forget("nobody")  # done after it

        asyncio.run_coroutine_threadsafe(taken(), self._loop).result(PATIENCE_S)

    def add_once_waited_for(self, *results: tuple[str, int]) -> threading.Thread:
        def add() -> None:
            assert self._waits.wait(PATIENCE_S)
            self.add(*results)

        thread = threading.Thread(target=add)
        thread.start()
        return thread


@contextlib.contextmanager
def running(folder: Path) -> Iterator[LogThread]:
    log = LogThread(folder)
    log._thread.start()
    try:
        assert log._started.wait(PATIENCE_S)
        yield log
    finally:
        log._loop.call_soon_threadsafe(log._end.set)
        log._thread.join(PATIENCE_S)
        assert not log._thread.is_alive()


def told(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_the_log_is_told_from_an_offset_on_and_goes_on_with_what_comes(tmp_path, capsys):
    with running(tmp_path) as log:
        log.add(("Frost", 1000), ("Heat", 2000), ("Frost", 3000))
        thread = log.add_once_waited_for(("Heat", 4000))
        assert main(["tail", "--from", "1", "--count", "3", "--broker", log.url]) == 0
        thread.join(PATIENCE_S)
    assert told(capsys) == [
        "1 1970-01-01T00:00:02.000Z Heat",
        "2 1970-01-01T00:00:03.000Z Frost",
        "3 1970-01-01T00:00:04.000Z Heat",
    ]


def test_the_log_of_one_subscription_keeps_its_offsets(tmp_path, capsys):
    """As JSON: the result as it was, and where it stands."""
    with running(tmp_path) as log:
        log.add(("Frost", 1000), ("Heat", 2000), ("Frost", 3000))
        command = ["tail", "Frost", "--from", "0", "--count", "2", "--json", "--broker", log.url]
        assert main(command) == 0
    found = [json.loads(line) for line in told(capsys)]
    assert [(one["offset"], one["id"], one["end"]) for one in found] == [
        (0, "r-0", 1000),
        (2, "r-2", 3000),
    ]


def test_a_long_log_is_asked_for_in_ranges_and_told_whole(tmp_path, capsys, monkeypatch):
    """Of sizes that the broker allows, whatever the command would like."""
    monkeypatch.setattr("headwater.cli.subscriptions.tail.ROWS_AT_A_TIME", 7)
    monkeypatch.setattr(log_handlers, "ROWS_MAX", 5)
    with running(tmp_path) as log:
        log.add(*[("Frost", n) for n in range(40)])
        assert main(["tail", "--from", "0", "--count", "40", "--broker", log.url]) == 0
    assert [int(line.split()[0]) for line in told(capsys)] == list(range(40))


def test_it_ends_once_nobody_reads_on_though_nothing_more_comes(tmp_path):
    """As `headwater tail … | head -1` has it."""
    with running(tmp_path) as log:
        log.add(("Frost", 1000), ("Heat", 2000))
        words = [sys.executable, "-m", "headwater.cli", "tail", "--from", "0", "--broker", log.url]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as tail:
            assert tail.stdout is not None
            assert tail.stdout.readline().startswith(b"0 ")
            tail.stdout.close()
            assert tail.wait(PATIENCE_S) == 0


def test_what_is_gone_or_not_there_yet_is_told_with_a_way_out(tmp_path, capsys):
    with running(tmp_path) as log:
        log.add(("Frost", 1), ("Frost", 2))
        assert main(["tail", "--from", "9", "--broker", log.url]) == 1
        assert "the log ends at offset 2: there is no 9 yet" in capsys.readouterr().err
        log.add(("Frost", 3), now_ms=5000)
        log.take_old(5000)
        assert main(["tail", "--from", "0", "--broker", log.url]) == 1
        error = capsys.readouterr().err
        assert "the log begins at offset 2" in error
        assert "begin with --from 2" in error


@pytest.mark.parametrize("offset", ["-1", "x", "1.5", ""])
def test_an_offset_is_a_whole_number(offset, capsys):
    assert main(["tail", f"--from={offset}"]) == 2
    assert "expected an offset" in capsys.readouterr().err


def test_the_log_is_not_followed_over_mqtt(capsys):
    assert main(["tail", "--from", "0", "--broker", "mqtt://127.0.0.1:1"]) == 2
    assert "http://" in capsys.readouterr().err
