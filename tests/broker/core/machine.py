"""A broker's machine for tests: told in short, checked after every message."""

import json

from broker.core.broker import Broker, BrokerOptions
from broker.core.effects import Acknowledge, Emit, Publish, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Payload,
    SpecificationSubmitted,
    Woken,
)
from broker.engine.limits import Limits
from broker.network.effects import Note

NOW = 1_700_000_000_000


class Machine:
    """Holds the time; `tell` handles one message and checks the invariants."""

    def __init__(self, limits=None, **options):
        self.broker = Broker(BrokerOptions(**options), limits or Limits())
        self.now = NOW
        self.effects = []

    def tell(self, message):
        self.effects = self.broker.handle(message, self.now)
        self.broker.check_invariants()
        wake = self.broker.next_wake()
        assert wake is None or wake > self.now
        return self.effects

    def wait(self, ms):
        """Let time pass, waking the broker whenever it wants; all effects of that."""
        end = self.now + ms
        effects = []
        while (wake := self.broker.next_wake()) is not None and wake <= end:
            self.now = wake
            effects += self.tell(Woken())
        self.now = end
        self.effects = effects
        return effects

    def submit(self, text, client="me", proven=False):
        """The reply."""
        self.tell(SpecificationSubmitted(client, "1", text, "here", "token", proven))
        assert Acknowledge(("token",)) in self.effects
        return self.reply()

    def cancel(self, name, client="me", proven=False):
        """The reply."""
        self.tell(CancelRequested(client, "1", name, "here", "token", proven))
        assert Acknowledge(("token",)) in self.effects
        return self.reply()

    def reply(self):
        """The last of the answers to one request."""
        return self.replies()[-1]

    def replies(self):
        found = [effect for effect in self.effects if isinstance(effect, Reply)]
        assert [one.reply_to for one in found] == ["here"] * len(found)
        assert [one.final for one in found] == [False] * (len(found) - 1) + [True]
        return [json.loads(one.payload) for one in found]

    def send(self, *events, type_name="Temp", source="t1", token=None):
        """One payload of one event or of several; the results."""
        data = json.dumps(events[0] if len(events) == 1 else events).encode()
        return self.send_bytes(data, type_name, source, token)

    def send_bytes(self, data, type_name="Temp", source="t1", token=None):
        """One payload; the results."""
        self.tell(EventsReceived((Payload(type_name, source, data, token),)))
        return self.results()

    def results(self):
        found = [e.payload for one in self.effects if isinstance(one, Emit) for e in one.results]
        return [json.loads(payload) for payload in found]

    def published(self, topic):
        """What was published on a topic, by the last message."""
        found = [p for one in self.effects if isinstance(one, Publish) for p in one.publications]
        return [json.loads(p.payload) if p.payload else None for p in found if p.topic == topic]

    def notes(self):
        return [effect for effect in self.effects if isinstance(effect, Note)]

    @property
    def ledger(self):
        return self.broker.ledger.to_dict()


def event(at, val=20.0, **more):
    """A reading `at` ms after the beginning."""
    return {"timestamp": NOW + at, "val": val, **more}


DECLARED = "event Temp(val: float)\n"


def subscription(name="Hot", pattern="Temp(val > 30)", subscriber="anna", seq=1):
    return f"subscription {name} seq {seq} from {subscriber} to alerts\ndetect {pattern}\n"


HOT = DECLARED + subscription()
