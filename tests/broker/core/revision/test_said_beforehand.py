"""What a home says of a text beforehand is what a host of its cells then does."""

import json
import random

import pytest

from broker.core.broker import Broker, BrokerOptions
from broker.core.effects import Reply
from broker.core.installer import Asker
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    NetworkTold,
    Payload,
    SpecificationSubmitted,
)
from broker.core.networked.networked import NetworkedBroker
from broker.engine.limits import Limits
from broker.network.placement.home_records import CellSaved

TYPES = "event A(n: int)\nevent B(n: int)\nevent C(n: int)\n"
ASSIGNED = (("n", "n = A.n"), ("n, m", "n = A.n, m = 1"), ("n, m", "n = A.n, m = 2"))
DETECTED = ("A then C", "D then C", "E then C", "D then E")


def drawn(draw, step):
    """Draw a text whose tasks all hold half of what they detect once some events have come."""
    names, values = draw.choice(ASSIGNED)
    text = TYPES + (
        f"define D({names}) detect A(n > {draw.choice([1, 1, 2])}) then B within 1 h"
        f" assign {values}\n"
        f"define E(n) detect D then B within {draw.choice([1, 1, 2])} h assign n = D.n\n"
    )
    for name in draw.sample(["S", "T", "U"], draw.randint(1, 3)):
        detected, seq = draw.choice(DETECTED), draw.choice([step, step, 1])
        text += f"subscription {name} seq {seq} from x to y detect {detected} within 1 h\n"
    return text


class Host:
    """A host of one cell, which does what it is asked to do."""

    def __init__(self):
        self.core = Broker(BrokerOptions(name="c", lateness_ms=0))
        self.now = 0

    def install(self, text, keys):
        only = tuple(dict.fromkeys([*self.core.catalogue.subscriptions, *keys]))
        said = SpecificationSubmitted("x", "r", text.decode(), only=only)
        (reply, *_) = [one for one in self.core.handle(said, self.now) if isinstance(one, Reply)]
        assert json.loads(reply.payload)["ok"]

    def keep_only(self, keys):
        for subscriber, name in list(self.core.catalogue.subscriptions):
            if (subscriber, name) not in keys:
                self.core.handle(CancelRequested(subscriber, "r", name), self.now)

    def feed(self):
        for _ in range(3):
            for type_name in "AB":
                self.now += 1_000
                data = json.dumps({"timestamp": self.now, "n": 5}).encode()
                said = EventsReceived((Payload(type_name, "s", data),))
                self.core.handle(said, self.now)

    def holding(self, key):
        """Return of the tasks of a subscription, by name, whether it holds anything."""
        matcher, sub = self.core._matcher, self.core.catalogue.subscriptions[key]
        names = [sub.instance_of(task) for task in (*sub.definitions, sub.task)]
        return {
            matcher.running[name].task.name: any(
                seat.agent.held() for seat in matcher.seats_of(name)
            )
            for name in names
        }


class Home:
    """A home, and the hosts of its cells."""

    def __init__(self):
        self.core = NetworkedBroker(BrokerOptions(name="a", networked=True, cells=True), Limits())
        self.hosts = {}

    def said(self, text):
        preview = self.core.installer.preview(text, None, Asker("x"), self.core.options)
        return json.loads(preview.payload())

    def submit(self, text):
        asked = SpecificationSubmitted("x", "r", text, cells=16)
        effects = self.core.handle(asked, 1_000)
        return json.loads(next(one.payload for one in effects if isinstance(one, Reply)))

    def follow(self, text):
        """Have hosts run what they are to run, and home have their state; which text counts."""
        cells = self.core.book.cells
        self.hosts = {name: host for name, host in self.hosts.items() if name in cells}
        for name, cell in cells.items():
            if name not in self.hosts:
                self.hosts[name] = Host()
                self.hosts[name].install(text.encode(), cell.keys)
            self.hosts[name].keep_only(cell.keys)
            for revision in cell.revisions:
                self.hosts[name].install(revision.text, revision.keys)
        holding = {key: self.hosts[name].holding(key) for key, name in self.core.book.of.items()}
        for name, cell in list(cells.items()):
            place = cell.serving.number, 1, 0, 0
            self.core.handle(
                NetworkTold(CellSaved(name, *place, b"state", cell.revision_asked)), 1_000
            )
            self.hosts[name].feed()
            assert all(all(self.hosts[name].holding(key).values()) for key in cell.keys)
        return holding


def test_what_joins_a_cell_that_goes_on_begins_there_as_it_would_alone():
    one = "subscription One seq {} from x to y detect D then C within 1 h\n"
    two = "subscription Two from x to y detect D then C within 2 h\n"
    begin = TYPES + "define D(n) detect A(n > {}) then B within 1 h assign n = A.n\n"
    home = Home()
    home.submit(begin.format(1) + one.format(1))
    home.follow(begin.format(1) + one.format(1))
    for number, keeps, parts in ((1, ["D"], []), (2, [], [{"task": "D", "lines": ["B"]}])):
        text = begin.format(number) + one.format(2) + two
        rows = {row["subscription"]: row for row in home.said(text)["subscriptions"]}
        assert (rows["One"]["keeps"], rows["One"]["parts"]) == (keeps, parts)
        joins = rows["Two"]
        assert (joins["keeps"], joins["begins"], joins["goes_on"]) == ([], ["D"], False)
        assert joins["parts"] == []


def test_what_is_changed_to_need_a_definition_begins_it_though_it_goes_on_for_others():
    text = (
        TYPES
        + "define D({}) detect A then B within 1 h assign {}\n"
        + "define E(n) detect D then B within 1 h assign n = D.n\n"
        + "subscription One seq {} from x to y detect {} then C within 1 h\n"
        + "subscription Two seq {} from x to y detect E then C within 1 h\n"
    )
    home = Home()
    become(home, [text.format(*ASSIGNED[0], 1, "D", 1)])
    after = text.format(*ASSIGNED[1], 2, "E", 2)
    assert [row["keeps"] for row in home.said(after)["subscriptions"]] == [["D"], ["D", "E"]]
    become(home, [after])


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_what_is_said_of_a_text_is_what_becomes_of_it(seeds):
    for seed in seeds:
        draw = random.Random(seed)
        become(Home(), [drawn(draw, step) for step in range(1, 5)])


def become(home, history):
    """Submit texts, and compare what is said of each with what hosts then hold."""
    for text in history:
        said, answer = home.said(text), home.submit(text)
        assert said["ok"] == answer["ok"]
        if not said["ok"]:
            continue
        rows = {row["subscription"]: row for row in said["subscriptions"]}
        changed = {name: row for name, row in rows.items() if row["change"] == "changed"}
        assert changed == {row["subscription"]: row for row in answer.get("changes", [])}
        holding = home.follow(text)
        begun = dict.fromkeys([row["task"] for row in said["bounds"]])
        for name, row in rows.items():
            if row["change"] == "same":
                continue
            holds = holding["x", name]
            in_part = {part["task"] for part in row["parts"]}
            goes_on = dict.fromkeys(row["keeps"], True) | {name: row["goes_on"]}
            goes_on |= dict.fromkeys(row["begins"], False)
            expected = {task: goes_on[task] for task in goes_on if task not in in_part}
            assert {task: holds[task] for task in expected} == expected
            assert [task for task in goes_on if not goes_on[task] and task not in begun] == []
