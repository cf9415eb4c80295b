"""Each door of a broker but MQTT's and HTTP's, with spoilt inputs brought to it.

Owns a class for each kind of input: `bring` brings so many and has a good one answered as ever.
Must not know how many there are in all. Invariant: what is brought follows from the seed.
"""

import random
import traceback
from collections import deque

import msgspec
import pytest

from broker.core.messages import EventsReceived, Payload, SourceAdvertised
from broker.engine.runtime.budget import in_one_go
from broker.network.frames.messages import FramesReceived
from broker.network.session.limits import make_link_limits
from broker.network.session.links import Links
from broker.network.session.told import Close, Closed, Delivered, Offered, Opened, Received, Write
from language import LanguageError, check_text, format_text
from simulation.network.cells import CellRun
from simulation.network.correlated import CorrelatedRun
from simulation.network.first import FirstRun
from simulation.network.links import Link
from simulation.network.rewound import RewoundRun
from simulation.network.scenario import Run, Shape
from simulation.network.split import PlannedSplitRun
from tests.broker.core.machine import DECLARED, HOT, NOW, Machine, event, subscription
from tests.fuzz.spoiling import spoil_bytes, spoil_json, spoil_packed
from tests.language.corpus import FILES, HEAD, TOKENS, WHO


class Face:
    """Brings inputs one by one, to a broker made anew from time to time."""

    per_world = 2_000

    def bring(self, inputs):
        """Bring so many."""
        for number in range(inputs):
            if number % self.per_world == 0:
                self.begin()
            self.take()
            if (number + 1) % self.per_world == 0 or number + 1 == inputs:
                self.calm()


class Payloads(Face):
    """Events and advertisements of sources, as JSON and as MessagePack, told to a broker's core."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def begin(self):
        """Make a broker that detects something."""
        self.machine = Machine()
        assert self.machine.submit(HOT)["ok"]
        pattern = "Temp(val > 3) as a then Temp as b within 50 ms where b.val > a.val"
        assert self.machine.submit(DECLARED + subscription("Pair", pattern))["ok"]

    def take(self):
        """Bring one."""
        chance, machine = self.chance, self.machine
        machine.now += chance.choice((0, 1, 50))
        at = machine.now - NOW + chance.choice((-3_000, 0, 0, 0, 10))
        good = event(at, 40.0, loc=[12.5, 41.9], certainty=0.9)
        if chance.random() < 0.2:
            good = [good, event(at + 1, 10.0)]
        data = msgspec.json.encode(good)
        if chance.random() < 0.1:
            stated = msgspec.json.encode({"types": ["Temp"], "period": "1 s", "loc": [1, 2]})
            told = SourceAdvertised("t2", spoil_json(chance, stated), "token")
        elif chance.random() < 0.3:
            packed = spoil_packed(chance, msgspec.msgpack.encode(good))
            told = EventsReceived((Payload("Temp", "t1", packed, "token", "msgpack"),))
        else:
            source = chance.choice(("t1", "t1", "t3", "ü/é"))
            told = EventsReceived((Payload("Temp", source, spoil_json(chance, data), "token"),))
        machine.effects = machine.broker.handle(told, machine.now)

    def calm(self):
        """A good event is a result as ever."""
        machine = self.machine
        machine.broker.check_invariants()
        machine.now += 10
        found = machine.send(event(machine.now - NOW, 31.0), source="calm")
        assert any(one["subscription"] == "Hot" for one in found)


class Texts(Face):
    """Specifications with tokens exchanged and bytes spoilt, checked and laid out."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self._short = [text for text in FILES if len(text) < 600]

    def begin(self):
        """Nothing is kept."""

    def take(self):
        """Bring one."""
        chance = self.chance
        if chance.random() < 0.3:
            drawn = " ".join(chance.choices(TOKENS, k=chance.randrange(1, 12)))
            text = HEAD + WHO + "detect " + drawn
        else:
            words = chance.choice(self._short).split(" ")
            for _ in range(chance.randrange(1, 4)):
                words[chance.randrange(len(words))] = chance.choice(TOKENS)
            text = " ".join(words)
            if chance.random() < 0.3:
                data = spoil_bytes(chance, text.encode("utf-8", "surrogatepass"))
                text = data.decode("utf-8", "replace")
        checked = check_text(text)
        assert (checked.specification is None) == bool(checked.diagnostics)
        try:
            format_text(text)
        except LanguageError:
            assert not checked.ok

    def calm(self):
        """A good text is taken as ever."""
        assert check_text(HOT).ok


class LinkBytes(Face):
    """Bytes of a stranger or a neighbour at a link's socket, before and after its proof."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self._limits = make_link_limits()
        self._now = self._number = 0

    def begin(self):
        """Make a listener."""
        self._ours = self._links("b")

    def _links(self, name, secret=b"secret"):
        self._number += 1
        return Links(name, self._number, self._limits, secret)

    def take(self):
        """Bring a conversation, spoilt from some write on."""
        spoilt_from = self.chance.randrange(5)
        secret = self.chance.choice((b"secret", b"secrets"))
        delivered = self._converse(self._links("a", secret), lambda turn: turn >= spoilt_from)
        assert secret == b"secret" or not delivered

    def calm(self):
        """A good neighbour is heard as ever."""
        self._ours = self._links("b")
        assert self._converse(self._links("a"), lambda _turn: False) == GOOD

    def _converse(self, theirs, spoils):
        """Have them dial, greet, prove and say a message; which messages were delivered."""
        chance = self.chance
        self._now += 1
        self._number += 1
        here, nonce = self._number, chance.randbytes(16)
        away = deque(written(theirs.handle(Opened(1, nonce, True, "b"), self._now)))
        effects = self._ours.handle(Opened(here, chance.randbytes(16)), self._now)
        delivered, offered, turn = [], False, 0
        while not any(isinstance(effect, Close) for effect in effects) and turn < TURNS_MAX:
            for effect in effects:
                if isinstance(effect, Delivered):
                    delivered += effect.messages
            for data in written(effects):
                away.extend(written(theirs.handle(Received(1, data), self._now)))
            if not offered and theirs.up("b"):
                offered = True
                said = theirs.handle(Offered("b", GOOD, True), self._now)
                away.extend(written(said))
            if not away:
                break
            data = away.popleft()
            data = spoil_bytes(chance, data) if spoils(turn) else data
            effects = self._ours.handle(Received(here, data), self._now)
            turn += 1
        self._ours.handle(Closed(here), self._now)
        return delivered


TURNS_MAX = 12
GOOD = [b"all is well"]


def written(effects):
    """The bytes that are to be written."""
    return [effect.data for effect in effects if isinstance(effect, Write)]


class Frames:
    """What a neighbour that knows the secret says over its link, beside what it says rightly.

    A network is simulated, in which spoilt copies of some frames come before them; when it has
    come to rest each broker gets very many more, and what it would answer leads nowhere. That the
    results are right is not asked: a neighbour is trusted. That no broker fails is.
    """

    beside = 300  # copies in a run; whatever they break is said anew, so that more never end
    afterwards = 3_000  # of each broker

    def __init__(self, seed):
        self.seed = seed
        self.chance = random.Random(seed)
        self.brought = self._beside = 0
        self._seen = {}

    def bring(self, inputs):
        """Simulate networks until at least so many were brought."""

        def arrived(link, name, frame):
            self._arrived(link.other(name), name, frame)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Link, "arrived", arrived)
            while self.brought < inputs:
                self.seed += 1
                self._beside = 0
                self._seen = {}
                kind = KINDS[self.seed % len(KINDS)]
                run = kind(self.seed, Shape(faults=0, events=150))
                try:
                    run.run()
                except Exception as error:
                    if fell_in_a_broker(error):
                        raise
                self._flood(run)

    def _arrived(self, peer, name, frame):
        self._seen.setdefault(peer.name, []).append((name, frame.data))
        if self._beside < self.beside and self.chance.random() < 0.2:
            self._beside += 1
            self.brought += 1
            peer.hear(FramesReceived(name, (spoil_packed(self.chance, frame.data),)))

    def _flood(self, run):
        for place in run.places:
            network, seen = place.process.network, self._seen.get(place.name, [])
            now = run.world.now
            for _ in range(self.afterwards if seen else 0):
                name, data = self.chance.choice(seen)
                in_one_go(
                    network.work(FramesReceived(name, (spoil_packed(self.chance, data),)), now)
                )
                self.brought += 1


def fell_in_a_broker(error):
    """Whether it was raised in a broker's own code, not by what judges a run."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [file for file in files if "/simulation/" in file or "/broker/" in file]
    return bool(ours) and "/simulation/" not in ours[-1]


KINDS = (Run, CellRun, PlannedSplitRun, CorrelatedRun, FirstRun, RewoundRun)
