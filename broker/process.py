"""The process of one broker: from a configuration to an exit status.

Owns signals, the event loop, the log's set-up and the word to the supervisor. Must not know what a
broker does. Invariant: a broker that cannot start leaves nothing open and says why in one sentence;
SIGTERM and SIGINT end it as they should, clients told and listeners closed; SIGHUP has it read
rights, certificates and secrets again.
"""

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from broker import logs
from broker.config import Config
from broker.site.data_dir import claimed, name_of
from broker.site.reload import ReloadError
from broker.site.site import Site
from broker.site.supervisor import Supervisor

_RELOADS: set[asyncio.Task[None]] = set()  # the loop itself would let go of them


def run(config: Config) -> None:
    """Run a broker until SIGTERM or SIGINT. Raises StartError."""
    with (
        claimed(config.broker.data_dir) as folder,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        name = name_of(config.broker.name, folder)
        logs.set_up(config.log, name)
        broker = structs.replace(config.broker, name=name)
        runner.run(_serve(structs.replace(config, broker=broker), folder))


async def _serve(config: Config, folder: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Whoever starts it under `nohup` has it ignored; for others it must not end a broker that
    # is starting, either: what it reads then is new anyway.
    hangup_heard = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    if hangup_heard:
        loop.add_signal_handler(signal.SIGHUP, _nothing)
    site = Site(config, folder)
    where = await _started(site, stop)
    if where is None:
        return
    supervisor = Supervisor()
    alive = asyncio.create_task(_tell_alive(supervisor), name="watchdog")
    try:
        # What is there now stays; to look through it again and again would only delay events.
        gc.collect()
        gc.freeze()
        if hangup_heard:
            loop.add_signal_handler(signal.SIGHUP, _reload, site)
        logs.announce("ready", **where)
        supervisor.ready()
        await stop.wait()
        supervisor.stopping()
    finally:
        alive.cancel()
        await site.stop()
        logs.tell("info", "stopped")


def _nothing() -> None:
    """Do nothing on a signal."""


def _reload(site: Site) -> None:
    """Have a site read its rights again; what is wrong with them stands in the log."""
    task = asyncio.get_running_loop().create_task(_reloaded(site), name="reload")
    _RELOADS.add(task)
    task.add_done_callback(_RELOADS.discard)


async def _reloaded(site: Site) -> None:
    with suppress(ReloadError):
        await site.reload()


async def _started(site: Site, stop: asyncio.Event) -> dict[str, str] | None:
    """Start it, which may take a while where much is to be recovered; None: told to end before."""
    starting = asyncio.create_task(site.start(), name="start")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        return None
    return await starting


async def _tell_alive(supervisor: Supervisor) -> None:
    every_s = supervisor.alive_every_s
    while every_s:
        supervisor.alive()
        await asyncio.sleep(every_s)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Of uvloop where it can be had, which it cannot on every machine; else asyncio's own."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop
