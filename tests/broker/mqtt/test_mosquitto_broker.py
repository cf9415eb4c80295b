"""mosquitto's own clients against a broker process: every feature that they can ask for.

What is plain MQTT here, for the broker's own topics see `test_mosquitto_events`. Each test has
topics and client identifiers of its own, as they share the process.
"""

import asyncio
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.mqtt.codec import packets as p
from headwater.cli import main
from tests.broker.mqtt.programs import PATIENCE_S, Watched, publish, run, subscriber
from tests.broker.mqtt.sockets import RawClient
from tests.broker.running import CONFIG, RunningBroker

pytestmark = pytest.mark.program("mosquitto_pub", "mosquitto_sub", "mosquitto_rr")
EVERY_VERSION = pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
V5 = ("-V", "mqttv5")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broker")
    with RunningBroker(folder, CONFIG, "--set", f"broker.data_dir={folder}/data") as running:
        yield running
        assert running.process.poll() is None


@pytest.fixture
def port(broker):
    return broker.port()


@pytest.fixture
def own(request):
    """A name of the test's own, for topics and client identifiers."""
    return request.node.name.replace("[", "-").rstrip("]").removeprefix("test_")


def counted(broker, *path):
    """A number of the MQTT face, 0 where it has not been counted yet."""
    found = broker.get("/v1/status")[1]["mqtt"]
    for part in path:
        found = found.get(part, 0)
    return found


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


# --- delivery -----------------------------------------------------------------------------------


@EVERY_VERSION
@pytest.mark.parametrize("sent", [0, 1])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_a_message_comes_at_the_lesser_of_both_qos_and_1(port, own, version, sent, asked):
    with subscriber(port, "-V", version, "-t", own, "-q", asked) as sub:
        for text in ("one", "{}", "ünï", "x" * 20_000):
            publish(port, "-V", version, "-t", own, "-q", sent, "-m", text)
            assert sub.messages(1) == [f"{own}|{min(sent, asked, 1)}|0|{text}"]


@EVERY_VERSION
def test_messages_at_qos_2_come_once_and_in_order(port, own, version):
    speaks = ("-V", version, "-t", own, "-q", 2)
    with subscriber(port, *speaks) as sub:
        assert sub.lines[-1].endswith(": 2")
        numbers = [str(number) for number in range(200)]
        publish(port, *speaks, "-l", lines="".join(f"{number}\n" for number in numbers))
        said = publish(port, *speaks, "-m", "last")
        assert "received PUBREC" in said
        assert "received PUBCOMP" in said
        assert sub.messages(201) == [f"{own}|2|0|{text}" for text in (*numbers, "last")]


@EVERY_VERSION
def test_a_will_at_qos_2_comes(port, own, version):
    will = ("--will-topic", own, "--will-payload", "gone", "--will-qos", 2)
    with subscriber(port, "-V", version, "-t", own, "-q", 2) as sub:
        with subscriber(port, "-V", version, "-t", f"{own}/x", *will) as mourned:
            mourned.kill()
        assert sub.messages(1) == [f"{own}|2|0|gone"]


@EVERY_VERSION
def test_versions_hear_each_other(port, own, version):
    other = {"mqttv5": "mqttv311", "mqttv311": "mqttv5"}[version]
    with subscriber(port, "-V", version, "-t", own, "-q", 1) as sub:
        publish(port, "-V", other, "-t", own, "-q", 1, "-m", "x")
        assert sub.messages(1) == [f"{own}|1|0|x"]


@EVERY_VERSION
def test_many_messages_arrive_whole_and_in_order(port, own, version):
    numbers = [str(number) for number in range(3000)]
    with subscriber(port, "-V", version, "-t", own, "-q", 1, form="%p") as sub:
        said = ("-V", version, "-q", 1, "-t", own, "-l")
        publish(port, *said, lines="".join(f"{number}\n" for number in numbers))
        assert sub.messages(3000) == numbers


@EVERY_VERSION
def test_wildcards_choose_by_level_and_leave_topics_of_the_server(port, own, version):
    wanted = {
        f"{own}/+/c": ["a/c", "/c", "$x/c"],
        f"{own}/#": ["", "a", "a/c", "/c", "$x/c", "a/b/c"],
        f"{own}/+": ["a"],
        f"{own}/a/#": ["a", "a/c", "a/b/c"],
    }
    topics = [own, *(f"{own}/{rest}" for rest in ("a", "a/c", "/c", "$x/c", "a/b/c", "end"))]
    for topic_filter, rests in wanted.items():
        with subscriber(
            *(port, "-V", version, "-t", topic_filter, "-t", f"{own}/end", "-q", 1), form="%t"
        ) as sub:
            for topic in topics:
                publish(port, "-V", version, "-t", topic, "-m", "x", "-q", 1)
            heard = []
            while (topic := sub.messages(1)[0]) != f"{own}/end":
                heard.append(topic)
            assert sorted(heard) == sorted(f"{own}/{rest}".rstrip("/") for rest in rests)


@EVERY_VERSION
def test_a_wildcard_at_the_first_level_sees_no_topic_of_the_server(port, own, version):
    """And nobody can publish there: `$SYS` and its like are the server's.

    MQTT 3.1.1 has no word of refusal, so such a message is acknowledged and dropped.
    """
    with subscriber(port, "-V", version, "-t", "#", "-t", "$SYS/#", form="%t") as sub:
        there = ("-V", version, "-t", f"$SYS/{own}", "-m", "x", "-q", 1)
        status, *said = run("mosquitto_pub", port, "-d", *there)
        publish(port, "-V", version, "-t", own, "-m", "x")
        while (topic := sub.messages(1)[0]) != own:
            assert not topic.startswith("$")
        if version == "mqttv5":
            assert "Not authorized" in "".join(said)
        else:
            assert status == 0


def test_nobody_there_is_told_to_a_v5_publisher(port, own):
    assert "RC:16" in publish(port, *V5, "-t", own, "-m", "x", "-q", 1)
    with subscriber(port, *V5, "-t", own, "-q", 1):
        assert "RC:0" in publish(port, *V5, "-t", own, "-m", "x", "-q", 1)


@EVERY_VERSION
def test_members_of_a_group_share_the_messages(port, own, version):
    share = ("-V", version, "-t", f"$share/{own}/{own}/#", "-q", 1)
    with (
        subscriber(port, *share, form="%p") as one,
        subscriber(port, *share, form="%p") as two,
        subscriber(port, "-V", version, "-t", f"{own}/#", "-q", 1, form="%p") as alone,
    ):
        # Fewer than a member may have in flight: none is ever behind, so they take strict turns.
        numbers = "".join(f"{number}\n" for number in range(20))
        publish(port, "-V", version, "-t", f"{own}/x", "-q", 1, "-l", lines=numbers)
        assert alone.messages(20) == numbers.split()
        heard = [one.messages(10), two.messages(10)]
        assert sorted(map(int, heard[0] + heard[1])) == list(range(20))


@EVERY_VERSION
def test_a_shared_filter_that_is_none_is_refused_and_the_others_granted(port, own, version):
    filters = ("-t", f"$share/{own}", "-t", own)
    with subscriber(port, "-V", version, *filters, "-q", 1) as sub:
        refusal = {"mqttv311": 0x80, "mqttv5": 0x8F}[version]
        assert sub.lines[-1].endswith(f": {refusal}, 1")


# --- retained messages ----------------------------------------------------------------------------


@EVERY_VERSION
def test_a_retained_message_is_set_replaced_and_cleared(port, own, version):
    said = ("-V", version, "-t", own, "-q", 1)
    with subscriber(port, *said) as live:
        publish(port, *said, "-r", "-m", "first")
        publish(port, *said, "-r", "-m", "second")
        publish(port, *said, "-m", "passing")
        with subscriber(port, *said) as later:
            assert later.messages(1) == [f"{own}|1|1|second"]
        publish(port, *said, "-r", "-n")
        with subscriber(port, *said) as newest:
            publish(port, *said, "-m", "now")
            assert newest.messages(1) == [f"{own}|1|0|now"]
        texts = [line.split("|", 1)[1] for line in live.messages(5)]
        assert texts == ["1|0|first", "1|0|second", "1|0|passing", "1|0|", "1|0|now"]


@EVERY_VERSION
def test_retained_messages_come_by_wildcard_at_the_granted_qos(port, own, version):
    for number in range(5):
        publish(port, "-V", version, "-t", f"{own}/{number}", "-q", 1, "-r", "-m", number)
    for qos in (0, 1):
        with subscriber(port, "-V", version, "-t", f"{own}/+", "-q", qos) as sub:
            assert sorted(sub.messages(5)) == [f"{own}/{n}|{qos}|1|{n}" for n in range(5)]
        status, output, _ = run(
            *("mosquitto_sub", port, "-V", version, "-t", f"{own}/#", "-q", qos),
            *("--retained-only", "-W", 5, "-C", 5, "-F", "%p"),
        )
        assert (status, sorted(output.split())) == (0, list("01234"))


def test_retain_as_published_keeps_the_flag_of_live_messages(port, own):
    topic = (*V5, "-t", own, "-q", 1)
    with (
        subscriber(port, *topic, "--retain-as-published") as keeps,
        subscriber(port, *topic) as clears,
    ):
        publish(port, *topic, "-r", "-m", "x")
        publish(port, *topic, "-m", "y")
        assert keeps.messages(2) == [f"{own}|1|1|x", f"{own}|1|0|y"]
        assert clears.messages(2) == [f"{own}|1|0|x", f"{own}|1|0|y"]


def test_a_retained_message_with_an_expiry_ends(broker, port, own):
    before = counted(broker, "retained_messages")
    expiry = ("-D", "publish", "message-expiry-interval", 1)
    publish(port, *V5, "-t", own, "-r", "-q", 1, "-m", "short", *expiry)
    assert counted(broker, "retained_messages") == before + 1
    until(lambda: counted(broker, "retained_messages") == before)


# --- wills --------------------------------------------------------------------------------------


def with_will(own, version, *more):
    return (
        *("-V", version, "-t", f"{own}/x", "-i", own),
        *("--will-topic", f"{own}/will", "--will-payload", "gone", "--will-qos", 1, *more),
    )


@EVERY_VERSION
def test_a_will_is_published_when_its_client_is_killed(port, own, version):
    with subscriber(port, "-V", version, "-t", f"{own}/will", "-q", 1) as watcher:
        with subscriber(port, *with_will(own, version)) as killed:
            killed.kill()
            assert watcher.messages(1) == [f"{own}/will|1|0|gone"]
        with subscriber(port, *with_will(own, version, "--will-retain")) as killed:
            killed.kill()
            assert watcher.messages(1) == [f"{own}/will|1|0|gone"]
    with subscriber(port, "-V", version, "-t", f"{own}/will", "-q", 1) as late:
        assert late.messages(1) == [f"{own}/will|1|1|gone"]


@EVERY_VERSION
def test_no_will_is_published_when_its_client_leaves(port, own, version):
    with subscriber(port, "-V", version, "-t", f"{own}/will", "-q", 1) as watcher:
        with subscriber(port, *with_will(own, version), "-C", 1) as leaver:
            publish(port, "-t", f"{own}/x", "-m", "go")
            assert leaver.rest() == (0, [f"{own}/x|0|0|go"])
        publish(port, "-t", f"{own}/will", "-m", "end")
        assert watcher.messages(1) == [f"{own}/will|0|0|end"]


@EVERY_VERSION
def test_disconnect_with_will_is_of_v5_alone(port, own, version):
    """mosquitto_sub that is interrupted says reason 0x04 in MQTT 5 and a plain one in 3.1.1."""
    with subscriber(port, "-V", version, "-t", f"{own}/will", "-q", 1) as watcher:
        with subscriber(port, *with_will(own, version)) as interrupted:
            interrupted.end()
        publish(port, "-t", f"{own}/will", "-m", "end")
        first = watcher.messages(1)
        assert first == [f"{own}/will|1|0|gone" if version == "mqttv5" else f"{own}/will|0|0|end"]


def test_a_delayed_will_waits_and_a_return_prevents_it(port, own):
    delayed = ("-c", "-x", 60, "-D", "will", "will-delay-interval", 1)
    with subscriber(port, *V5, "-t", f"{own}/will", "-q", 1) as watcher:
        with subscriber(port, *with_will(own, "mqttv5", *delayed)) as killed:
            killed.kill()
            began_s = time.monotonic()
            assert watcher.messages(1) == [f"{own}/will|1|0|gone"]
            assert time.monotonic() - began_s > 0.9
        with subscriber(port, *with_will(own, "mqttv5", *delayed)) as killed:
            killed.kill()
        with subscriber(port, *V5, "-i", own, "-c", "-x", 60, "-t", f"{own}/x") as back:
            # A later will of another client marks the moment at which that one would have come.
            with subscriber(port, *with_will(f"{own}/2", "mqttv5", *delayed)) as killed:
                killed.kill()
            with subscriber(port, *V5, "-t", f"{own}/2/will", "-q", 1) as second:
                assert second.messages(1) == [f"{own}/2/will|1|0|gone"]
            publish(port, "-t", f"{own}/will", "-m", "end")
            assert watcher.messages(1) == [f"{own}/will|0|0|end"]
            back.end()


# --- sessions -----------------------------------------------------------------------------------


def keeping(own, version):
    expiry = ("-x", 60) if version == "mqttv5" else ()
    return ("-V", version, "-i", own, "-c", "-q", 1, *expiry)


def kept(own, version):
    return (*keeping(own, version), "-t", own)


@EVERY_VERSION
def test_a_kept_session_gets_what_came_while_its_client_was_away(port, own, version):
    with subscriber(port, *kept(own, version)) as first:
        first.kill()
    for number in range(20):
        publish(port, "-t", own, "-q", number % 2, "-m", number)
    with subscriber(port, *kept(own, version)) as again:
        heard = [line.split("|")[3] for line in again.messages(10)]
        assert heard == [str(number) for number in range(1, 20, 2)]


@EVERY_VERSION
def test_a_clean_start_forgets_what_was_kept(broker, port, own, version):
    with subscriber(port, *kept(own, version)) as first:
        first.kill()
    publish(port, "-t", own, "-q", 1, "-m", "before")
    ended = counted(broker, "ended", "clean_start")
    with subscriber(port, "-V", version, "-i", own, "-q", 1, "-t", own) as clean:
        assert counted(broker, "ended", "clean_start") == ended + 1
        publish(port, "-t", own, "-q", 1, "-m", "after")
        assert clean.messages(1) == [f"{own}|1|0|after"]


def test_a_v5_session_ends_when_its_expiry_is_over(broker, port, own):
    with subscriber(port, *V5, "-i", own, "-c", "-x", 1, "-q", 1, "-t", own) as short:
        expired = counted(broker, "ended", "expired")
        short.kill()
    publish(port, "-t", own, "-q", 1, "-m", "while away")
    until(lambda: counted(broker, "ended", "expired") == expired + 1)
    with subscriber(port, *V5, "-i", own, "-c", "-x", 1, "-q", 1, "-t", own) as back:
        publish(port, "-t", own, "-q", 1, "-m", "new")
        assert back.messages(1) == [f"{own}|1|0|new"]


@EVERY_VERSION
def test_the_same_identifier_takes_the_session_over(broker, port, own, version):
    before = counted(broker, "closed", "session_taken_over")
    with subscriber(port, *kept(own, version)) as old:
        with subscriber(port, *kept(own, version)) as new:
            assert counted(broker, "closed", "session_taken_over") > before
            if version == "mqttv5":
                assert "(142)" in old.line("DISCONNECT")
            old.kill()  # it would come again, and take it back
            new.kill()
        publish(port, "-t", own, "-q", 1, "-m", "x")
    with subscriber(port, *kept(own, version)) as newest:
        assert newest.messages(1) == [f"{own}|1|0|x"]


def test_a_message_that_expires_while_its_client_is_away_does_not_come(port, own):
    with subscriber(port, *kept(own, "mqttv5")) as first:
        first.kill()
    expiry = ("-D", "publish", "message-expiry-interval")
    publish(port, *V5, "-t", own, "-q", 1, "-m", "short", *expiry, 1)
    expired_s = time.monotonic() + 1.1
    publish(port, *V5, "-t", own, "-q", 1, "-m", "long", *expiry, 100)
    time.sleep(max(0, expired_s - time.monotonic()))  # the time itself is what is tested
    with subscriber(port, *kept(own, "mqttv5"), form="%E|%p") as again:
        left, text = again.messages(1)[0].split("|")
        assert (text, 90 < int(left) < 100) == ("long", True)


# --- connections --------------------------------------------------------------------------------


def test_a_client_that_falls_silent_is_closed_and_its_will_published(broker, port, own):
    async def scene():
        will = p.Will(f"{own}/will", b"silent", 1)
        silent = await RawClient.open(port, client_id=own, keep_alive_s=1, will=will)
        assert await silent.next() == p.Disconnect(0x8D)
        assert await silent.next() is None
        await silent.close()

    before = counted(broker, "closed", "keep_alive_timeout")
    with subscriber(port, *V5, "-t", f"{own}/will", "-q", 1) as watcher:
        began_s = time.monotonic()
        asyncio.run(scene())
        assert time.monotonic() - began_s > 1.4
        assert watcher.messages(1) == [f"{own}/will|1|0|silent"]
    assert counted(broker, "closed", "keep_alive_timeout") == before + 1


@pytest.mark.long
@pytest.mark.timeout(60)
@EVERY_VERSION
def test_pings_keep_a_silent_client_connected(port, own, version):
    """Five seconds is the shortest keep-alive that mosquitto's clients allow."""
    with subscriber(port, "-V", version, "-t", own, "-k", 5, "-W", 30) as sub:
        for _ in range(3):
            sub.line("received PINGRESP")
        publish(port, "-t", own, "-m", "still there")
        assert sub.messages(1) == [f"{own}|0|0|still there"]


def test_a_topic_alias_stands_for_its_topic(port, own):
    with subscriber(port, *V5, "-t", own, "-q", 1) as sub:
        alias = ("-D", "publish", "topic-alias", 3)
        said = publish(port, *V5, "-t", own, "-q", 1, "-l", *alias, lines="one\ntwo\nthree\n")
        assert "(null)" in said  # it sent no topic after the first
        assert sub.messages(3) == [f"{own}|1|0|{text}" for text in ("one", "two", "three")]


def test_a_topic_alias_beyond_the_maximum_is_not_sent(port, own):
    alias = ("-D", "publish", "topic-alias", 33)
    status, _, _ = run("mosquitto_pub", port, *V5, "-t", own, "-q", 1, "-m", "x", *alias)
    assert status != 0


def test_a_subscription_identifier_comes_with_each_message(port, own):
    identifier = ("-D", "subscribe", "subscription-identifier", 77)
    with subscriber(port, *V5, "-t", own, "-q", 1, *identifier, form="%S|%p") as sub:
        publish(port, *V5, "-t", own, "-q", 1, "-m", "x")
        assert sub.messages(1) == ["77|x"]


def test_properties_of_a_message_reach_its_subscribers(port, own):
    sent = (
        *("-D", "publish", "content-type", "text/plain", "-D", "publish", "response-topic", "r/t"),
        *("-D", "publish", "correlation-data", "c7", "-D", "publish", "user-property", "k", "v"),
        *("-D", "publish", "payload-format-indicator", 1),
    )
    with subscriber(port, *V5, "-t", own, "-q", 1, form="%C|%R|%D|%P|%F|%p") as sub:
        publish(port, *V5, "-t", own, "-q", 1, "-m", "x", *sent)
        assert sub.messages(1) == ["text/plain|r/t|c7|k:v|1|x"]


def test_a_client_gets_no_packet_larger_than_it_takes(broker, port, own):
    before = counted(broker, "dropped", "too_large_for_client")
    bound = ("-D", "connect", "maximum-packet-size", len(own) + 60)
    with subscriber(port, *V5, "-t", own, "-q", 1, *bound) as sub:
        publish(port, "-t", own, "-q", 1, "-m", "x" * 100)
        publish(port, "-t", own, "-q", 1, "-m", "fits")
        assert sub.messages(1) == [f"{own}|1|0|fits"]
    assert counted(broker, "dropped", "too_large_for_client") == before + 1


def test_a_client_with_a_small_receive_maximum_gets_everything(port, own):
    with subscriber(port, *V5, "-i", own, "-c", "-x", 60, "-t", own, "-q", 1) as first:
        first.kill()
    publish(port, "-t", own, "-q", 1, "-l", lines="".join(f"{n}\n" for n in range(100)))
    bound = ("-D", "connect", "receive-maximum", 2, "-C", 100)
    keep = (*V5, "-i", own, "-c", "-x", 60, "-t", own, "-q", 1)
    status, output, _ = run("mosquitto_sub", port, *keep, *bound, "-W", 8)
    assert (status, output.split()) == (0, [str(number) for number in range(100)])


def test_a_request_is_answered_on_its_response_topic(port, own):
    """Between two clients; mosquitto_rr sets the topic, the other answers there."""
    with (
        subscriber(port, *V5, "-t", own, "-q", 1, form="%R|%p") as server,
        Watched(
            *("mosquitto_rr", "-h", "127.0.0.1", "-p", port, "-d", *V5, "-q", 1, "-W", 8),
            *("-t", own, "-e", f"{own}/answer", "-m", "ask"),
        ) as asker,
    ):
        to, text = server.messages(1)[0].split("|")
        assert (to, text) == (f"{own}/answer", "ask")
        publish(port, *V5, "-t", to, "-q", 1, "-m", "told")
        assert asker.line("told")
        assert asker.rest()[0] == 0


@EVERY_VERSION
def test_unsubscribing_takes_that_subscription_of_a_kept_session_alone(port, own, version):
    keep = keeping(own, version)
    with subscriber(port, *keep, "-t", f"{own}/a", "-t", f"{own}/b") as first:
        first.kill()
    with subscriber(port, *keep, "-t", f"{own}/c", "-U", f"{own}/a") as second:
        if not any("UNSUBACK" in line for line in second.lines):
            second.line("UNSUBACK")
        for level in "abc":
            publish(port, "-t", f"{own}/{level}", "-q", 1, "-m", level)
        assert [line[-1] for line in second.messages(2)] == ["b", "c"]


# --- clients that harm ----------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1])
def test_a_subscriber_that_stops_reading_keeps_nothing_from_others(broker, port, own, qos):
    """It is halted. At QoS 0 it misses what finds no room; at QoS 1 its session ends. That it
    learns by the word for it, upon which it stops, or, where it goes on too late to take that, by
    its connection, upon which it connects again.
    """
    ended = counted(broker, "ended", "queue_overflow")
    speaks = (*V5, "-t", own, "-q", qos)
    with (
        ThreadPoolExecutor(1) as beside,
        subscriber(port, *speaks, "-W", 120, form="%l") as halted,
        subscriber(port, *speaks, "-W", 120, form="%l") as reads,
    ):
        halted.process.send_signal(signal.SIGSTOP)
        for begin in range(200_000, 200_100, 10):
            lengths = range(begin, begin + 10)
            lines = "".join("x" * length + "\n" for length in lengths)
            publishing = beside.submit(publish, port, *V5, "-t", own, "-q", 1, "-l", lines=lines)
            assert reads.messages(10) == [str(length) for length in lengths]
            publishing.result()
        mqtt = broker.get("/v1/status")[1]["mqtt"]
        assert mqtt["queued_bytes"] <= 4_194_304
        halted.process.send_signal(signal.SIGCONT)
        if qos:
            halted.line("Received DISCONNECT (151)", "sending CONNECT")
            assert counted(broker, "ended", "queue_overflow") == ended + 1
        else:
            assert mqtt["dropped"]["queue_full"] > 10
            came = halted.messages(100 - mqtt["dropped"]["queue_full"])
            publish(port, *V5, "-t", own, "-q", 0, "-m", "end")
            assert halted.messages(1) == ["3"]
            assert came == sorted(set(came))


def test_too_many_connections_are_closed_and_room_is_made_by_those_who_leave(tmp_path, capsys):
    flags = ("--set", f"broker.data_dir={tmp_path}/data", "--set", "mqtt_limits.connections_max=3")
    with RunningBroker(tmp_path, CONFIG, *flags) as few:
        subscribers = [subscriber(few.port(), *V5, "-t", "a", "-q", 1) for _ in range(3)]
        try:
            status, _, errors = run("mosquitto_pub", few.port(), *V5, "-t", "a", "-m", "x", "-q", 1)
            assert (status != 0, counted(few, "closed", "connections_max") > 0) == (True, True)
            assert errors
            assert main(["doctor", "--broker", f"http://127.0.0.1:{few.port('http')}"]) == 1
            assert "3 of 3 MQTT connections are taken" in capsys.readouterr().out
            subscribers[0].end()
            until(lambda: counted(few, "connections") == 2)
            publish(few.port(), *V5, "-t", "a", "-m", "y", "-q", 1)
            assert subscribers[1].messages(1) == ["a|1|0|y"]
        finally:
            for one in subscribers:
                one.__exit__()
