"""Whatever connections do: each message once and in order, or both sides are told to begin anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.session.told import Choked, Held, Offered
from tests.broker.network.session.world import World

SMALL = {
    "credit_events_max": 12,
    "credit_bytes_max": 400,
    "batch_events": 4,
    "batch_bytes": 60,
    "unacked_bytes_max": 300,
    "waiting_events_max": 40,
    "waiting_bytes_max": 2000,
    "control_bytes_max": 1500,
}


class Course:
    """One run: what was offered and taken is noted by the sender's fresh beginning."""

    def __init__(self, seed, **limits):
        self.world = World(seed, **limits)
        self.taken = {}  # (sender, fresh beginnings so far, control) -> messages
        self.number = 0

    def offer(self, sender, control):
        world = self.world
        to = "b" if sender == "a" else "a"
        count = world.draw.choice([1, 1, 1, 2, 5, 9])
        messages = []
        for _ in range(count):
            self.number += 1
            filler = b"x" * world.draw.choice([0, 0, 3, 30, 90])
            messages.append(b"%s%d%s" % (sender.encode(), self.number, filler))
        events = 0 if control else world.draw.choice([0, count, count, 3 * count])
        begun = self.begun(sender)
        refusals = len(world.said(sender, "refused"))
        world.tell(sender, Offered(to, messages, control, events))
        if len(world.said(sender, "refused")) == refusals:
            self.taken.setdefault((sender, begun, control), []).extend(messages)

    def begun(self, name):
        return sum(1 for e in self.world.log[name] if e[0] == "up" and e[2])

    def act(self, restarts):
        world, draw = self.world, self.world.draw
        what = draw.random()
        name = draw.choice("ab")
        if what < 0.6:
            world.step()
        elif what < 0.85:
            self.offer(name, control=draw.random() < 0.3)
        elif what < 0.89:
            if len(world.ends) < 8:
                world.dial(name, "b" if name == "a" else "a")
        elif what < 0.93:
            world.pass_ms(draw.choice([1, 4, 100, 2500]))
        elif what < 0.95:
            if world.ends:
                world.cut(*draw.choice(list(world.ends)))
        elif what < 0.97:
            world.tell(name, Held(draw.random() < 0.3))
        elif what < 0.99:
            mine = [c for n, c in world.ends if n == name]
            if mine:
                world.tell(name, Choked(draw.choice(mine), draw.random() < 0.3))
        elif restarts and draw.random() < 0.2:
            world.restart(name)

    def heal(self):
        """All goes well from here on: what was taken last arrives."""
        world = self.world
        for name, connection in list(world.ends):
            world.cut(name, connection)
        for name in "ab":
            world.tell(name, Held(on=False))
        world.settle()
        world.dial("b", "a")
        world.settle()
        world.pass_ms(world.limits.heartbeat_ms)  # acknowledgements go with signs of life
        world.settle()
        for name, other in ("ab", "ba"):
            assert world.links[name].up(other)
            loads = world.links[name].sessions[other].loads()
            del loads["repeated"]
            assert set(loads.values()) == {0}, "nothing is kept that has arrived"

    def check(self, *, complete):
        for receiver, sender in (("b", "a"), ("a", "b")):
            for control in (False, True):
                parts = self.parts(receiver, control)
                offered = [m for (n, _, c), m in self.taken.items() if (n, c) == (sender, control)]
                used = []
                for part in parts:
                    if part:
                        begun = [o for o in offered if o[: len(part)] == part]
                        assert begun, (receiver, control, part, offered)
                        used.append(begun[0][0])
                assert len(set(used)) == len(used), "the same beginning was delivered twice"
                last = self.taken.get((sender, self.begun(sender), control), [])
                if complete:
                    assert parts[-1] == last
            self.check_control(receiver)

    def check_control(self, receiver):
        """Control overtakes events and is never overtaken by those that were offered later."""
        newest = 0
        for entry in self.world.log[receiver]:
            if entry[0] in {"up", "restarted"}:
                newest = newest if entry[0] == "up" and not entry[2] else 0
            elif entry[0] == "message":
                number = int(entry[3][1:].rstrip(b"x"))
                if entry[2]:
                    assert number > newest
                else:
                    newest = number

    def parts(self, receiver, control):
        """What was delivered, cut at fresh beginnings."""
        parts = [[]]
        for entry in self.world.log[receiver]:
            if (entry[0] == "up" and entry[2]) or entry[0] == "restarted":
                parts.append([])
            elif entry[0] == "message" and entry[2] == control:
                parts[-1].append(entry[3])
        return parts


def run(seed, *, restarts, steps, **limits):
    course = Course(seed, **limits)
    for _ in range(steps):
        course.act(restarts)
    course.check(complete=False)
    course.heal()
    course.check(complete=True)
    return course


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("limits", [{}, SMALL], ids=["default", "small"])
def test_each_message_arrives_once_and_in_order_or_both_begin_anew(limits, restarts):
    resumed = messages = 0
    for seed in range(60):
        world = run(seed, restarts=restarts, steps=300, **limits).world
        resumed += sum(not up[2] for name in "ab" for up in world.said(name, "up"))
        messages += sum(len(world.said(name, "message")) for name in "ab")
        for links in world.links.values():
            assert all(one.counts["malformed"] == 0 for one in links.sessions.values())
    assert resumed > 60, "connections were cut"
    assert messages > 3000


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(10))
def test_the_same_in_thousands_of_runs(part):
    for seed in range(part * 1000, (part + 1) * 1000):
        draw = seed % 4
        run(seed, restarts=draw % 2 == 1, steps=400, **(SMALL if draw < 2 else {}))


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 400))
def test_the_same_of_cases_that_are_searched_for(seed, restarts, steps):
    run(seed, restarts=restarts, steps=steps, **SMALL)


def test_while_both_processes_live_nothing_begins_anew():
    """With room for all that is offered there is no reason to.

    Only the decider's word counts: the other begins anew each time until its answer has come.
    """
    for seed in range(40):
        course = run(seed, restarts=False, steps=250)
        assert [up[2] for up in course.world.said("a", "up")].count(True) == 1
        assert {r[1] for r in course.world.said("a", "refused")} <= {"never_up", "no_neighbour"}


def test_the_same_seed_gives_the_same_run():
    first, second = (run(7, restarts=True, steps=300, **SMALL).world.log for _ in range(2))
    assert first == second
