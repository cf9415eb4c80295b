"""Fresh networks over slow links: behind `submit --wait` the very first event counts, anywhere."""

import asyncio
import itertools
import json
import random

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.running import PATIENCE_S, client

LINE = {"b1": "b0", "b2": "b1", "b3": "b2"}
TYPES_COUNT = 3
NETWORKS = 200
BEGIN_MS = 1_700_000_000_000


class SlowFleet(Fleet):
    """Every byte of a link takes `delay_s`."""

    def __init__(self, folder, delay_s):
        super().__init__(folder, LINE)
        self.delay_s = delay_s


def text_of(numbers):
    """Texts of types that nobody ever sent, which nobody says to send either."""
    return "".join(
        f"event First{number}(val: int)\n"
        f"subscription Heard{number} from one to alerts\ndetect First{number}(val > 0)\n"
        for number in numbers
    )


async def load(fleet, name, over):
    """Send events that nobody wants, a hundred in a second, until it is `over`.

    It is not cancelled: a wait with a timeout that ends just then swallows the cancellation.
    """
    async with client(fleet.brokers[name].port()) as one:
        for number in itertools.count():
            if over.is_set():
                return
            said = json.dumps({"timestamp": BEGIN_MS + number, "n": number})
            topic = f"headwater/events/Load/load-{name}"
            await one.publish(topic, said, qos=1, timeout=PATIENCE_S)
            await asyncio.sleep(0.01)


async def submit(fleet, name, scheme, numbers):
    """Run `headwater submit --wait` at a broker."""
    spec = fleet.folder / f"{name}.hw"
    spec.write_text(text_of(numbers))
    at = f"{scheme}://127.0.0.1:{fleet.brokers[name].port(scheme)}"
    words = ["submit", str(spec), "--broker", at, "--wait", "--timeout", "60"]
    assert await asyncio.to_thread(main, words) == 0


async def publish(fleet, name, number):
    async with client(fleet.brokers[name].port()) as one:
        said = json.dumps({"timestamp": BEGIN_MS + number, "val": 1})
        topic = f"headwater/events/First{number}/mute-{name}"
        await one.publish(topic, said, qos=1, timeout=4 * PATIENCE_S)


async def first_events(folder, draw, delay_s, *, settled):
    """Everything about one network is drawn; `settled`: all know each other before."""
    fleet = SlowFleet(folder, delay_s)
    await fleet.start()
    over, at = asyncio.Event(), draw.sample(fleet.names, 2)
    loads = [asyncio.ensure_future(load(fleet, name, over)) for name in at]
    try:
        if settled:
            await fleet.until(lambda: all(len(fleet.network(n)["known"]) == 3 for n in fleet.names))
        home = draw.choice(fleet.names)
        await submit(fleet, home, draw.choice(["mqtt", "http"]), range(TYPES_COUNT))
        origins = draw.sample(fleet.names, TYPES_COUNT)
        await asyncio.gather(*(publish(fleet, name, n) for n, name in enumerate(origins)))
        wanted = sorted((f"Heard{n}", BEGIN_MS + n) for n in range(TYPES_COUNT))

        def found():
            return sorted((row["subscription"], row["end"]) for row in fleet.results(home))

        await fleet.until(lambda: len(found()) >= len(wanted))
        assert found() == wanted
    finally:
        over.set()
        await asyncio.gather(*loads)
        await fleet.stop()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("delay_s", "settled"), [pytest.param(0.02, True, marks=pytest.mark.long), (0.15, False)]
)
def test_first_events_over_three_slow_links_count_once_each(tmp_path, delay_s, settled):
    draw = random.Random(f"{delay_s} {settled}")
    asyncio.run(first_events(tmp_path, draw, delay_s, settled=settled))


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(NETWORKS))
def test_so_they_do_in_very_many_fresh_networks_under_load(tmp_path, seed):
    draw = random.Random(seed)
    delay_s, settled = draw.choice([0.0, 0.02, 0.15]), draw.random() < 0.5
    asyncio.run(first_events(tmp_path, draw, delay_s, settled=settled))
