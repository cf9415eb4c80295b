"""The demonstration: recorded weather stations, a broker, and what it detects, live over MQTT.

Owns its entry. Must not know anything of a broker but what any client knows. Invariant: it ends
what it started, also when it is interrupted.

    layout, material (recordings as steps) ─▶ play ─▶ MQTT ─▶ brokers (process)
                     screen, summary ◀─ tally, moments ◀─ results over MQTT ◀─┘

It starts its brokers, submits, plays, waits for the last results, sums up, and ends them.
"""

from __future__ import annotations

import asyncio
import signal

from headwater.cli.output import CommandError
from language.errors import HeadwaterError

RATE = (
    2_000  # events a second: thousands of times faster than real time, and easy for a small board
)
INTERRUPTED = 128 + 2  # as a shell tells SIGINT


def run(*, as_json: bool = False, rate: float = RATE) -> int:
    """Runs it; 0 if every subscription had its results and nothing was lost, else 1.

    `rate` is in events a second. With `as_json` every result is a line, and the summary the last.
    """
    from headwater.demo.screen import Screen, ScreenGoneError

    screen = Screen(as_json=as_json)
    try:
        return asyncio.run(_run(screen, rate))
    except (KeyboardInterrupt, asyncio.CancelledError):
        screen.end_progress()
        screen.say("stopped")
        return INTERRUPTED
    except ScreenGoneError as gone:
        raise gone.error from None
    except HeadwaterError as error:
        screen.end_progress()
        raise CommandError(1, str(error)) from None


async def _run(screen: object, rate: float) -> int:
    from headwater.demo.material import load
    from headwater.demo.screen import Screen
    from headwater.demo.show import show

    assert isinstance(screen, Screen)
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await show(load(), screen, rate)
