"""A broker's core that joins servers, within the test's own process."""

import asyncio
import contextlib
import json
import random

import aiomqtt

from broker.bridge.backoff import Backoff
from broker.bridge.connection import NO_DELAY
from broker.bridge.joined import JoinedServers
from broker.config.joins import JoinSection
from broker.config.table import BrokerSection, Config
from broker.core.broker import BrokerOptions
from broker.core.messages import SpecificationSubmitted, Started, Stopped
from broker.core.recovery.durable_state import RestorableBroker
from broker.driver.requests import Requests
from broker.driver.runner import Runner
from broker.rights.current import CurrentRights
from broker.rights.quotas import QuotaLedger
from broker.rights.table import RightsTable
from tests.broker.bridge.servers import PATIENCE_S

TEXT = "event Temp(val: float)\nsubscription Hot from anna to alerts\ndetect Temp(val > 30)\n"


OPEN = CurrentRights(RightsTable(), "headwater")


class Inside:
    """In the place of the broker's own faces: what they were given."""

    def __init__(self):
        self.results = []
        self.published = []
        self.acknowledged = []
        self.replies = []

    def publish(self, effect):
        self.published += effect.publications

    def emit(self, effect):
        self.results += [json.loads(one.payload) for one in effect.results]

    def reply(self, effect):
        self.replies.append(json.loads(effect.payload))

    def acknowledge(self, effect):
        self.acknowledged += effect.tokens

    def fail(self, tokens):
        raise AssertionError(f"the core failed on {tokens}")

    def note(self, effect):
        pass

    def hold(self, *, on):
        pass


class Scene:
    """A core, its joins, and a journal that can be told to be slow."""

    def __init__(self, *joins, seed=1, wait_s=0.05, outbox=None, **more):
        self.outbox = outbox
        named = {f"j{number}": one for number, one in enumerate(joins)}
        config = Config(broker=BrokerSection(name="site-1"), joins=named, **more)
        self.inside = Inside()
        self.joined = JoinedServers(config, self.inside, random.Random(seed))
        for server in self.joined.servers:
            server.join._backoff = Backoff(random.Random(seed), wait_s, 4 * wait_s)
        self.runner = Runner(RestorableBroker(BrokerOptions(name="site-1")), self)
        self.requests = Requests(self.runner, self.runner.core.limits, OPEN, QuotaLedger())
        self.joined.attach(self.runner, self.requests.put)
        self.slow = False
        self.unsynced = []

    def __getattr__(self, name):
        """All effects go to the joins, but for acknowledgements while the journal is slow."""
        return getattr(self.joined, name)

    def acknowledge(self, effect):
        if self.slow:
            self.unsynced.append(effect)
        else:
            self.joined.acknowledge(effect)

    def sync(self):
        self.slow = False
        waiting, self.unsynced = self.unsynced, []
        for effect in waiting:
            self.joined.acknowledge(effect)

    @property
    def join(self):
        return self.joined.servers[0].join

    @property
    def events(self):
        return self.runner.core.ledger.events

    async def __aenter__(self):
        self._serving = asyncio.create_task(self.requests.serve())
        self.runner.handle(Started())
        self.joined.start(self.outbox, self.runner.now_ms)
        return self

    async def __aexit__(self, *_):
        self.runner.handle(Stopped())
        self.runner.close()
        await self.joined.stop()
        self._serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving

    def submit(self, text=TEXT):
        self.runner.handle(SpecificationSubmitted("test", "1", text, "here"))

    async def up(self):
        await until(lambda: not self.joined.missing())


async def until(condition):
    """Look until it holds; fails after a while."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  what is looked at tells nobody of its changes
            await asyncio.sleep(0.005)


def section(server, **more):
    return JoinSection(port=server.port, **more)


@contextlib.asynccontextmanager
async def client(server, *topics, **options):
    options = {"protocol": aiomqtt.ProtocolVersion.V5, "socket_options": NO_DELAY, **options}
    async with aiomqtt.Client("127.0.0.1", server.port, **options) as one:
        for topic in topics:
            await one.subscribe(topic, qos=1)
        yield one


def reading(number, at, **more):
    return json.dumps({"timestamp": at + number, "val": 31, "id": f"e{number}", **more})


async def send(one, numbers, at, prefix="headwater", qos=1, **more):
    """Events; at QoS 1 the server has all of them afterwards."""
    topic = f"{prefix}/events/Temp/t1"
    for number in numbers:
        await one.publish(topic, reading(number, at, **more), qos=qos)


async def take(one, wanted):
    """The payloads of the next messages as JSON by topic, until `wanted` says that it is enough."""
    found = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in one.messages:
            found.append((str(message.topic), json.loads(message.payload)))
            if wanted(found):
                return found
    raise AssertionError(found)


def ids(results):
    """The events in results."""
    return [result["events"]["Temp"][0] for result in results]
