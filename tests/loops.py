"""The event loops that a broker may run on: asyncio's own, and uvloop where there is one."""

import asyncio
from importlib.util import find_spec

if find_spec("uvloop") is None:
    FACTORIES = {"asyncio": asyncio.new_event_loop}
else:
    import uvloop

    FACTORIES = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


def _runner(factory):
    def run(main):
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main)

    return run


RUNNERS = {name: _runner(factory) for name, factory in FACTORIES.items()}
