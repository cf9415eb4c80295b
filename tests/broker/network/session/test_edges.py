"""What single rules of a session ask for: silence, credit, lapsing, choosing, what is malformed."""

import itertools
import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.session.frames import (
    OLDEST,
    VERSION,
    Accept,
    Ack,
    Bye,
    Data,
    FrameReader,
    Hello,
    LinkError,
    Ping,
    Proof,
    Welcome,
    decode,
    encode,
)
from broker.network.session.inbound import Inbound
from broker.network.session.limits import make_link_limits
from broker.network.session.links import Links
from broker.network.session.outbound import Outbound
from broker.network.session.session import ACK_RIDES_MS
from broker.network.session.told import (
    Choked,
    Close,
    Delivered,
    Down,
    Forgotten,
    Held,
    Offered,
    Opened,
    Received,
    Up,
    Woken,
    Write,
)
from tests.broker.network.session.world import World

OFTEN = {"heartbeat_ms": 2_000, "silence_ms": 6_500}
FRAMES = [
    Hello(1, "a", 1, bytes(16), 1, 0, True),
    Proof(bytes(32)),
    Welcome(1, 2, 3, 4, 5),
    Accept(True, 1, 2),
    Data(1, False, 2, [b"", b"x" * 300]),
    Ack(1, 2, 3),
    Ping(),
    Bye("because"),
]


# --- frames -----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(FRAMES), max_size=12), st.data())
def test_frames_are_the_same_however_their_bytes_are_cut(frames, data):
    stream = b"".join(map(encode, frames))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20))
    reader = FrameReader(1000)
    found = []
    for begin, end in itertools.pairwise(sorted({0, len(stream), *cuts})):
        reader.push(stream[begin:end])
        while (body := reader.next()) is not None:
            found.append(decode(body))
    assert found == frames


@given(st.binary(max_size=200))
def test_any_bytes_give_frames_or_a_sentence(data):
    reader = FrameReader(1000)
    reader.push(data)
    with suppress(LinkError):
        while (body := reader.next()) is not None:
            decode(body)


@given(st.binary(max_size=300), st.integers(0, 3), st.integers(0, 2**32))
def test_any_bytes_at_any_moment_close_one_connection_and_no_other(data, moment, seed):
    """Whatever comes at whichever step of a handshake or behind it."""
    world = World(seed, ("a", "b", "c"))
    world.dial("a", "c")
    world.settle()
    connection = world.dial("a", "b")
    for _ in range(moment * 3):
        world.step(whole=True)
    if ("a", connection) in world.ends:
        world.tell("a", Received(connection, data))
    assert world.links["a"].up("c")
    world.tell("a", Offered("c", [b"x"], events=1))
    world.settle()
    assert world.heard("c") == [b"x"]


def test_a_long_frame_in_small_pieces_is_put_together_once():
    """Linear, not quadratic, in the number of pieces: the reader joins when all of it is there."""
    reader = FrameReader(1 << 20)
    frame = encode(Data(1, False, 1, [bytes(1_000_000)]))
    for at in range(0, len(frame), 100):
        assert reader.next() is None
        reader.push(frame[at : at + 100])
    assert decode(reader.next()) == Data(1, False, 1, [bytes(1_000_000)])


def test_what_a_later_version_adds_to_a_frame_is_not_looked_at():
    body = bytes([0x94, 5, 1, 2, 3])
    assert decode(body) == Ack(1, 2, 3)
    assert decode(bytes([0x95, 5, 1, 2, 3, 0xC0])) == Ack(1, 2, 3)


# --- time -------------------------------------------------------------------------------------


def met(**limits):
    world = World(1, **limits)
    connection = world.dial("a", "b")
    world.settle()
    return world, connection


@pytest.mark.parametrize("theirs", [OLDEST, VERSION, VERSION + 1])
def test_both_ends_speak_the_lesser_of_their_versions(monkeypatch, theirs):
    mine, others = Links("a", 1), Links("b", 1)
    under_way = [(others, 2, mine.handle(Opened(1, bytes(16), dialled=True, expected="b"), 0))]
    monkeypatch.setattr("broker.network.session.links.VERSION", theirs)
    others.handle(Opened(2, bytes(16)), 0)
    heard = []
    while under_way:
        to, connection, effects = under_way.pop(0)
        for effect in effects:
            if isinstance(effect, Write):
                told = to.handle(Received(connection, effect.data), 0)
                under_way.append((mine, 1, told) if to is others else (others, 2, told))
            elif isinstance(effect, Up) and to is others:
                heard.append(effect.version)
    assert heard == [min(VERSION, theirs)]


def test_links_on_which_nothing_is_said_stay_up_by_heartbeats():
    world, _ = met()
    for _ in range(100):
        world.pass_ms(500)
        while world.step(whole=True):
            pass
    assert [world.said(name, "down") for name in "ab"] == [[], []]


def test_a_neighbour_that_falls_silent_is_cut_in_time():
    """Its socket stands and says nothing, as after a broken cable."""
    world, _ = met(**OFTEN)
    world.pipes = []
    for _ in range(16):
        world.pass_ms(500)
    assert world.said("a", "down") == [("down", "b", False)]
    assert world.said("b", "down") == [("down", "a", False)]
    reasons = [entry[1] for entry in world.said("a", "close")]
    assert reasons == ["it was silent for 6500 ms"]


def test_a_link_that_carries_one_way_alone_is_cut_on_both_sides():
    world, _ = met(**OFTEN)
    lost = next(pipe for pipe in world.pipes if pipe.to == "b")
    for _ in range(40):
        world.pass_ms(500)
        lost.bytes.clear()
        while world.step(whole=True):
            lost.bytes.clear()
    assert world.said("b", "down") == [("down", "a", False)]
    assert world.said("a", "down") == [("down", "b", False)]


def test_a_broker_that_slept_itself_cuts_nobody_before_it_has_listened():
    world, _ = met()
    world.now += 60_000
    world.tell("a", Woken())
    assert world.said("a", "down") == []
    world.settle()
    assert world.links["a"].up("b")


def test_a_broker_that_looks_seldom_cuts_a_silent_neighbour_all_the_same():
    world, _ = met(**OFTEN)
    world.pipes = []
    for _ in range(3):
        world.pass_ms(60_000)
    assert world.said("a", "down") == [("down", "b", False)]


def test_events_leave_at_once_on_an_idle_link_and_in_company_on_a_busy_one():
    world, _ = met(flush_ms=5)
    world.pass_ms(100)
    links = world.links["a"]

    def frames():
        return [e for e in links.handle(Offered("b", [b"x"], events=1), world.now) if is_data(e)]

    assert len(frames()) == 1
    assert [len(frames()) for _ in range(50)] == [0] * 50
    assert links.next_wake() == world.now + 5
    world.now += 5
    (write,) = (e for e in links.handle(Woken(), world.now) if is_data(e))
    assert len(decode(write.data[4:]).messages) == 50


def is_data(effect):
    return isinstance(effect, Write) and isinstance(decode_first(effect.data), Data)


def decode_first(data):
    reader = FrameReader(1 << 24)
    reader.push(data)
    return decode(reader.next())


def test_a_full_batch_leaves_at_once():
    world, _ = met(batch_events=8)
    world.pass_ms(100)
    links = world.links["a"]
    many = [links.handle(Offered("b", [b"x"], events=1), world.now) for _ in range(25)]
    # The first one alone, as the link was idle, then by eights.
    assert [i for i, effects in enumerate(many) if any(map(is_data, effects))] == [0, 8, 16, 24]


def test_control_overtakes_events_that_wait():
    world, _ = met(credit_events_max=4, batch_events=2)
    world.tell("b", Held(on=True))
    for n in range(20):
        world.tell("a", Offered("b", [b"%d" % n], events=1))
    world.tell("a", Offered("b", [b"now"], control=True))
    world.settle()
    assert world.heard("b", control=True) == [b"now"]
    assert world.heard("b") == []
    world.tell("b", Held(on=False))
    world.settle()
    assert world.heard("b") == [b"%d" % n for n in range(20)]


# --- limits -----------------------------------------------------------------------------------


def test_what_is_held_and_what_waits_stays_within_limits_and_refusals_are_told():
    world, _ = met(credit_events_max=10, batch_events=4, waiting_events_max=20)
    world.tell("b", Held(on=True))
    for n in range(200):
        world.tell("a", Offered("b", [b"%d" % n], events=1))
        world.settle()
    held = world.links["b"].sessions["a"]._in.waiting
    assert 10 <= sum(frame.events for frame in held) < 10 + 4
    assert world.links["a"].sessions["b"].loads()["waiting_events"] <= 20
    refused = sum(entry[2] for entry in world.said("a", "refused"))
    assert {entry[1] for entry in world.said("a", "refused")} == {"link_full"}
    world.tell("b", Held(on=False))
    world.settle()
    assert len(world.heard("b")) == 200 - refused
    assert [entry[1] for entry in world.said("a", "congested")] == [True, False]


def test_one_message_beyond_the_credit_is_not_stuck():
    world, _ = met(credit_bytes_max=100, credit_events_max=1)
    world.tell("a", Offered("b", [bytes(5000)], events=700))
    world.tell("a", Offered("b", [b"then"], events=1))
    world.settle()
    assert world.heard("b") == [bytes(5000), b"then"]


def test_a_message_that_is_too_long_is_refused_and_nothing_else_happens():
    world, _ = met(message_bytes_max=100)
    with pytest.raises(ValueError, match="a message of 101 bytes for a link, at most 100 are"):
        world.links["a"].handle(Offered("b", [b"x", bytes(101)], events=2), world.now)
    world.settle()
    assert world.heard("b") == []
    assert world.links["a"].up("b")


def test_a_long_list_is_cut_into_frames_within_limits():
    world, _ = met(batch_events=10, messages_max=10)
    for control in (False, True):
        messages = [b"%d" % n for n in range(95)]
        world.tell("a", Offered("b", messages, control, 0 if control else 300))
        world.settle()
        assert world.heard("b", control) == messages
    session = world.links["b"].sessions["a"]
    assert session.counts["delivered_events"] == 300


def test_too_much_control_gives_the_session_up_and_both_begin_anew():
    world, _ = met(control_bytes_max=1000)
    world.pipes = []  # nothing arrives any more
    for _ in range(20):
        world.tell("a", Offered("b", [bytes(100)], control=True))
    assert world.said("a", "down") == [("down", "b", True)]
    assert world.said("a", "refused")[0][1] == "link_full"
    assert {entry[1] for entry in world.said("a", "refused")[1:]} == {"never_up"}
    world.cut("b", next(c for n, c in world.ends if n == "b"))
    world.dial("b", "a")
    world.settle()
    assert [up[2] for up in world.said("a", "up")] == [True, True]
    assert [up[2] for up in world.said("b", "up")] == [True, True]
    assert world.heard("b", control=True) == []


def test_a_beginning_of_which_the_other_never_heard_is_made_anew():
    """The one that answers a welcome begins; if that answer is lost, nobody may go on with it."""
    world, _ = met(control_bytes_max=1000)
    for n in range(3):
        world.tell("b", Offered("a", [b"old%d" % n], control=True))
        world.settle()
    for _ in range(20):
        world.tell("b", Offered("a", [bytes(100)], control=True))
    assert world.said("b", "down") == [("down", "a", True)]
    for name, connection in list(world.ends):
        world.cut(name, connection)
    world.settle()
    heard = len(world.heard("a", control=True))
    world.dial("a", "b")
    to_a = world.pipes[-1]
    while not world.links["b"].up("a"):
        world.step(whole=True)
    for n in range(5):
        world.tell("b", Offered("a", [b"lost%d" % n], control=True))
    assert not world.links["a"].up("b")
    to_a.bytes.clear()
    for name, connection in list(world.ends):
        world.cut(name, connection)
    world.settle()
    world.dial("a", "b")
    world.settle()
    world.tell("b", Offered("a", [b"new"], control=True))
    world.settle()
    assert world.heard("a", control=True)[heard:] == [b"new"]
    assert [up[2] for up in world.said("a", "up")] == [True, True]
    assert [up[2] for up in world.said("b", "up")] == [True, True, True]


def test_a_neighbour_that_sends_beyond_its_credit_or_out_of_order_is_cut():
    limits = make_link_limits(credit_events_max=2, credit_bytes_max=100)
    inbound = Inbound(limits)
    assert inbound.ack() == Ack(0, 2, 100)
    inbound.held = True
    assert inbound.take(Data(1, False, 2, [b"x"])) is None
    with pytest.raises(LinkError, match="credit"):
        inbound.take(Data(2, False, 0, [b"y"]))
    few = Inbound(limits)
    few.ack()
    few.take(Data(1, False, 0, [bytes(99)]))
    few.take(Data(2, False, 0, [bytes(99)]))
    with pytest.raises(LinkError, match="credit"):
        few.take(Data(3, False, 0, [b"z"]))
    with pytest.raises(LinkError, match="frame 5 came after frame 1"):
        inbound.take(Data(5, False, 0, [b"y"]))
    assert inbound.take(Data(1, False, 2, [b"x"])) is None
    assert inbound.repeated == 1
    inbound.held = False
    assert inbound.release() == Data(1, False, 2, [b"x"])
    assert inbound.ack() == Ack(1, 4, 101)
    assert inbound.ack() is None


def test_an_acknowledgement_of_what_was_never_sent_is_refused():
    outbound = Outbound(make_link_limits())
    with pytest.raises(LinkError, match="acknowledges frame 1"):
        outbound.acknowledge(Ack(1, 5, 5))
    outbound.acknowledge(Ack(0, 5, 5))
    with pytest.raises(LinkError, match="takes credit back"):
        outbound.acknowledge(Ack(0, 4, 5))


def test_limits_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="silence_ms must be more than heartbeat_ms"):
        make_link_limits(silence_ms=10, heartbeat_ms=10)
    with pytest.raises(ValueError, match="batch_events must not be more than messages_max"):
        make_link_limits(messages_max=5, batch_events=6)
    with pytest.raises(ValueError, match="credit_events_max"):
        make_link_limits(credit_events_max=0)


# --- which connection -------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_of_two_that_dial_at_once_both_take_the_same_in_any_order(whole):
    for seed in range(200):
        world = World(seed)
        world.dial("a", "b")
        world.dial("b", "a")
        while world.step(whole):
            pass
        world.settle()
        assert len(world.ends) == 2, "one connection with two ends"
        mine, theirs = world.links["a"].sessions["b"], world.links["b"].sessions["a"]
        assert mine.up
        assert theirs.up
        assert mine.turn == theirs.turn
        assert {("a", mine.connection), ("b", theirs.connection)} == set(world.ends)
        # Nothing began anew but once for each.
        assert [up[2] for up in world.said("a", "up")].count(True) == 1


@pytest.mark.parametrize(("dialler", "other"), ["ab", "ba"])
def test_a_neighbour_that_lost_its_end_and_dials_is_believed_at_once(dialler, other):
    """Else it would have to wait until the other has noticed by silence."""
    world = World(1)
    world.dial(dialler, other)
    world.settle()
    (gone,) = (connection for name, connection in world.ends if name == "b")
    pipe = world.ends["b", gone]
    world.cut("b", gone)
    world.pipes.remove(pipe)  # the other end does not hear of it
    world.pass_ms(1)
    world.dial("b", "a")
    world.settle()
    assert world.links["a"].up("b")
    assert world.links["b"].up("a")
    assert world.now < 1000
    assert [up[2] for up in world.said("a", "up")] == [True, False]


def test_a_welcome_that_was_overtaken_by_a_later_one_is_passed_over():
    """Connections overtake each other; the decider has given up the earlier one."""
    world = World(1)
    to_a = {}
    for _ in range(2):
        world.dial("b", "a")
        to_a[len(to_a)] = world.pipes[-2:]
    first, second = to_a[0], to_a[1]
    for pipes in (first, second):  # both up to where a has said welcome
        for _ in range(2):
            world.deliver(pipes[0])
            world.deliver(pipes[1], behind=True)
    assert world.links["a"].sessions["b"].turn == 2
    for pipe in (second[1], first[1]):
        world.deliver(pipe)
    assert world.links["b"].sessions["a"].turn == 2
    world.settle()
    assert [len(world.said(name, "up")) for name in "ab"] == [1, 1]


def test_nothing_is_written_to_a_socket_that_takes_no_more():
    world, connection = met()
    world.tell("a", Choked(connection, on=True))
    before = len(world.ends["a", connection].bytes)
    world.tell("a", Offered("b", [b"x"], control=True))
    world.tell("a", Offered("b", [b"y"], events=1))
    assert len(world.ends["a", connection].bytes) == before
    world.tell("a", Choked(connection, on=False))
    world.settle()
    assert world.heard("b") + world.heard("b", control=True) == [b"y", b"x"]


def test_a_forgotten_neighbour_begins_anew():
    world, _ = met()
    world.tell("a", Forgotten("b"))
    world.settle()
    assert world.said("b", "down") == [("down", "a", False)]
    assert world.links["a"].sessions == {}
    world.dial("b", "a")
    world.settle()
    assert [up[2] for up in world.said("b", "up")] == [True, True]


def test_an_earlier_life_of_a_neighbour_is_not_believed_while_a_later_one_is_there():
    world, _ = met()
    world.restart("a")
    world.dial("a", "b")
    world.settle()
    old = World(2)  # as bytes of a process that is gone, still under way
    old.links["b"] = world.links["b"]
    assert world.links["b"].sessions["a"].peer_epoch == 2
    old.ends = world.ends
    old.next_connection = 100
    old.dial("a", "b")
    for _ in range(200):
        old.step(whole=True)
    assert ("up", "a", True, 1) not in old.log["b"]
    assert world.links["b"].sessions["a"].peer_epoch == 2


def test_what_is_offered_to_nobody_or_too_early_is_refused():
    world = World(1)
    world.tell("a", Offered("z", [b"x"], events=1))
    assert world.said("a", "refused") == [("refused", "no_neighbour", 1)]


def test_bytes_and_ends_of_connections_that_are_gone_are_nothing():
    links = Links("a", 1)
    assert links.handle(Received(7, b"x"), 0) == []
    links.handle(Opened(1, bytes(16)), 0)
    (write, close) = links.handle(Received(1, b"\x00\x00\x00\x00"), 0)
    assert isinstance(write, Write)
    assert isinstance(close, Close)
    assert links.handle(Received(1, b"x"), 0) == []
    assert links.next_wake() is None


def test_what_a_stranger_says_at_the_end_is_made_fit_for_a_log():
    links = Links("a", 1)
    links.handle(Opened(1, bytes(16)), 0)
    (close,) = links.handle(Received(1, encode(Bye("x\nERROR \x1b[2J" + "y" * 1000))), 0)
    assert close.reason.startswith("it says: x?ERROR ?[2Jyyy")
    assert len(close.reason) < 420


def test_at_the_end_everything_is_closed_with_a_word():
    world, _ = met()
    effects = world.links["a"].end()
    assert [type(effect) for effect in effects] == [Down, Write, Close]
    assert world.links["a"].next_wake() is None


def test_effects_name_what_they_are_of():
    """Whoever carries effects out relies on these and no others."""
    world, _ = met()
    seen = set()
    draw = random.Random(3)
    for _ in range(300):
        name = draw.choice("ab")
        told = Offered("b" if name == "a" else "a", [b"x"], control=draw.random() < 0.5, events=1)
        effects = world.links[name].handle(told, world.now)
        seen |= {type(effect) for effect in effects}
        world.perform(name, effects)
        world.step()
    assert seen <= {Write, Delivered, Up}


def test_a_frame_is_acknowledged_with_what_is_said_anyway_or_a_sign_of_life():
    """A frame for each frame would cost as much as what is carried."""
    world, _ = met()
    session = world.links["a"].sessions["b"]
    world.tell("a", Offered("b", [b"word"], control=True))
    world.settle()
    assert world.heard("b", control=True) == [b"word"]
    assert session.loads()["control_bytes"]
    world.pass_ms(ACK_RIDES_MS)
    world.tell("b", Offered("a", [b"answer"], control=True))
    world.settle()
    assert not session.loads()["control_bytes"]
    world.tell("a", Offered("b", [b"word"], control=True))
    world.settle()
    for _ in range(2):
        world.pass_ms(world.limits.heartbeat_ms)
        world.settle()
    assert not session.loads()["control_bytes"]


def test_a_neighbour_of_the_version_before_hears_a_sign_of_life_every_two_seconds(monkeypatch):
    """It cuts who is silent for six and a half."""
    monkeypatch.setattr("broker.network.session.links.VERSION", 2)
    world, _ = met()
    connections = len(world.ends)
    begun = list(world.pipes)
    written = 0
    for _ in range(6):
        world.pass_ms(2_000)
        written += sum(len(pipe.bytes) > 0 for pipe in begun)
        world.settle()
    assert written >= 10
    assert len(world.ends) == connections


@pytest.mark.parametrize("dialler", ["a", "b"])
@pytest.mark.parametrize("restarted", ["a", "b"])
@pytest.mark.parametrize("steps", range(1, 12))
def test_a_life_that_only_one_side_heard_of_is_begun_anew_by_both(dialler, restarted, steps):
    """The handshake behind a restart breaks off anywhere, be it before the answer's last frame."""
    listener = "b" if dialler == "a" else "a"
    world = World(steps)
    world.dial(dialler, listener)
    world.settle()
    world.restart(restarted)
    world.settle()
    world.dial(dialler, listener)
    for _ in range(steps):
        world.step(whole=True)
    for name, connection in list(world.ends):
        for pipe in world.pipes:
            pipe.bytes.clear()  # the network fails in the middle
        world.cut(name, connection)
    world.settle()
    world.dial(dialler, listener)
    world.settle()
    other = "b" if restarted == "a" else "a"
    assert all(world.links[name].up(peer) for name, peer in (("a", "b"), ("b", "a")))
    epochs = [epoch for _, _, fresh, epoch in world.said(other, "up") if fresh]
    assert list(dict.fromkeys(epochs)) == [1, 2], "the life before is not gone on with"
