"""First events of a type wait until others have answered, and keep their order."""

from hypothesis import given
from hypothesis import strategies as st

from broker.core.exchange.announcing import Announcing
from broker.core.messages import EventsReceived, NetworkTold, Payload, SourceWithdrawn
from broker.engine.limits import Limits
from broker.network.frames.told import SourceShown, TypesAnswered
from broker.network.replication.descent import Descent
from broker.network.replication.incarnation import Incarnation
from broker.network.replication.local_sources import LocalSources

WAIT_MS = 60_000


class Door:
    """What the core would do: it knows what is shown, and is told what leaves."""

    def __init__(self, words_max=1_000):
        limits = Limits(first_events_max=words_max, first_events_wait_ms_max=WAIT_MS)
        self.incarnation = Incarnation(0, Descent(), 0, (), 0)
        self.waits = Announcing(limits, self.incarnation)
        self.sources = LocalSources(100)
        self.left = []
        self.asked = 0
        self.now = 0

    def tell(self, *words):
        """What is handled at once."""
        before = len(self.left)
        for word in words:
            message = EventsReceived((word,)) if isinstance(word, Payload) else word
            for each in self.waits.pass_on(message, self.sources, self.now):
                self.handle(each)
        self.waits.look(self.sources.unanswered, self.now)
        self.ask()
        return self.left[before:]

    def ask(self):
        self.waits.ask(self.begin)

    def begin(self):
        self.asked += 1
        return self.asked

    def answered(self, number):
        before = len(self.left)
        while (each := self.waits.take(number, self.now)) is not None:
            self.handle(each)
        self.ask()
        return self.left[before:]

    def handle(self, message):
        if isinstance(message, NetworkTold) and isinstance(message.what, SourceShown):
            self.sources.sends(message.what.source, message.what.type_name)
        elif isinstance(message, NetworkTold) and isinstance(message.what, TypesAnswered):
            self.sources.answered(message.what.types)
        elif isinstance(message, EventsReceived):
            self.left += message.payloads
        else:
            self.left.append(message)


def payload(type_name, source, number=0):
    return Payload(type_name, source, str(number).encode())


def test_a_new_type_waits_with_what_its_source_says_meanwhile_and_a_known_one_passes():
    door = Door()
    door.sources.sends("a", "Temp")
    door.sources.answered(["Temp"])
    known, new = payload("Temp", "a"), payload("Wind", "b")
    assert door.tell(known, new) == [known]
    same_source, same_type = payload("Temp", "b"), payload("Wind", "c")
    assert door.tell(same_source, same_type) == []
    assert door.answered(0) == []
    assert door.answered(1) == [new, same_source, same_type]
    assert not door.waits.batches
    assert door.tell(new) == [new]


def test_what_was_advertised_and_not_answered_waits_also_in_another_process():
    """The core remembers which types nobody has answered yet; a process that ends forgets none."""
    door = Door()
    door.sources.sends("a", "Wind")
    again = LocalSources(100)
    again.restore(door.sources.state())
    door.sources = again
    door.tell()
    first = payload("Wind", "a")
    assert door.tell(first) == []
    assert door.answered(1) == [first]


def test_a_source_that_leaves_does_so_behind_its_events():
    door = Door()
    first, leaves = payload("Wind", "a"), SourceWithdrawn("a")
    assert door.tell(first, leaves) == []
    assert door.answered(1) == [first, leaves]


def test_types_that_come_while_others_are_asked_wait_for_the_next_probe_alone():
    """One new type after another must not make the first wait without end."""
    door = Door()
    words = [payload(f"T{number}", f"s{number}") for number in range(3)]
    door.tell(words[0])
    door.tell(words[1], words[2])
    assert door.asked == 1
    assert door.answered(1) == words[:1]
    assert door.asked == 2
    assert door.answered(2) == words[1:]


def test_no_more_wait_than_may_and_that_is_counted():
    door = Door(words_max=3)
    words = [payload("A", "a", number) for number in range(4)]
    door.tell(*words[:2])
    assert door.answered(0) == []
    door.tell(words[2])
    assert door.answered(0) == words[:3]
    assert door.waits.counts()["first_events_overflow"] == 1


def test_who_never_answers_is_not_waited_for_without_end_and_that_is_counted():
    door = Door()
    first = payload("A", "a")
    door.tell(first)
    assert door.waits.due == WAIT_MS
    door.now = WAIT_MS
    assert door.answered(0) == [first]
    assert door.waits.counts()["first_events_unanswered"] == 1


STEPS = st.lists(
    st.one_of(st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz")), st.integers(0, 9)),
    max_size=40,
)


@given(STEPS, st.sets(st.sampled_from("ABC")))
def test_nothing_is_lost_and_sources_keep_their_order(steps, known):
    door = Door()
    for name in sorted(known):
        door.sources.sends("k", name)
    door.sources.answered(known)
    sent = []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            door.answered(door.asked)
        else:
            sent.append(payload(*step, number))
            door.tell(sent[-1])
    for _ in range(3):
        door.answered(door.asked)
    assert sorted(door.left, key=sent.index) == sent
    for source in "xyz":
        assert [p for p in door.left if p.source == source] == [
            p for p in sent if p.source == source
        ]


def test_an_event_right_behind_its_advertisement_waits_though_nobody_was_asked_in_between():
    """What waited for a settlement is handed on in one; of it first events were dropped."""
    door = Door()
    first = payload("Wind", "a")
    door.sources.sends("a", "Wind")  # as the core does with the advertisement
    assert door.waits.pass_on(EventsReceived((first,)), door.sources, 0) == []


def test_nothing_is_taken_while_another_is_there_that_was_announced_before():
    """It would be held behind what its source said after it, and nobody wakes for it."""
    door = Door()
    first = payload("Wind", "a")
    door.tell(first)
    door.incarnation.displace("another was announced before", ())
    door.now = 2 * WAIT_MS
    assert door.answered(1) == []
    assert door.waits.due is None
    door.incarnation.readmit()
    door.incarnation.recalls("me", [], 0)
    door.incarnation.settle([], [], 2_000)
    assert door.answered(1) == [first]
