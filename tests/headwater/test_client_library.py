"""`headwater.Client` and `headwater.Driver` as a program uses them, with real brokers."""

import re
import socket
import threading
import time
from pathlib import Path

import pytest

import headwater
from broker.credentials import hash_password, new_token, token_digest
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker

HOT = "event Temp(val: float)\nsubscription Hot from anna to fan\ndetect Temp(val > 30)\n"
READINGS = [
    {"type": "Temp", "source": f"t{n % 2}", "id": f"e{n}", "timestamp": 1_000 + n, "val": 31.0}
    for n in range(5)
]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with RunningBroker(tmp_path_factory.mktemp("broker"), CONFIG) as one:
        yield one


def http(broker, **more):
    return headwater.Client(f"http://127.0.0.1:{broker.port('http')}", name="anna", **more)


def mqtt(broker, **more):
    return headwater.Client(f"mqtt://127.0.0.1:{broker.port()}", name="anna", **more)


def ids(results):
    return [one["events"]["Temp"] for one in results]


def logged(client, count, offset=0):
    """So many results of the log: an event is acknowledged before its results are stored."""
    deadline = time.monotonic() + PATIENCE_S
    while len(rows := list(client.log(offset))) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return rows


@pytest.mark.parametrize("face", [http, mqtt])
def test_a_text_is_submitted_listed_and_cancelled(broker, face):
    client = face(broker)
    answer = client.submit(HOT)
    assert (answer["subscriptions"], answer["state"]) == (["Hot"], "active")
    assert client.submit(HOT, wait=False)["subscriptions"] == ["Hot"]
    (listed,) = client.subscriptions()
    assert (listed["subscription"], listed["subscriber"], listed["state"]) == (
        "Hot",
        "anna",
        "active",
    )
    client.cancel("Hot")
    assert client.subscriptions() == []
    with pytest.raises(headwater.ClientError, match="there is no subscription `Hot`") as told:
        client.cancel("Hot")
    assert told.value.reached


@pytest.mark.parametrize("face", [http, mqtt])
def test_every_error_of_a_text_is_told_with_its_place(broker, face):
    with pytest.raises(headwater.ClientError, match="Tmp") as told:
        face(broker).submit(HOT.replace("detect Temp", "detect Tmp"))
    (error,) = told.value.errors
    assert (error["code"], error["line"], error["column"]) == ("HW201", 3, 8)
    assert face(broker).subscriptions() == []


def test_a_name_of_several_subscribers_is_active_when_all_are(monkeypatch):
    row = {"subscription": "Hot", "state": "active"}
    looks = [[row, row | {"state": "accepted"}], [], [row, row]]
    client = headwater.Client(timeout_s=5)
    monkeypatch.setattr(client, "subscriptions", lambda: looks.pop(0))
    client._wait(["Hot"])
    assert not looks


def test_what_is_published_is_found_in_the_log_and_by_who_follows(broker):
    client = http(broker)
    client.submit(HOT)
    followed = []
    begun = threading.Event()

    def follow():
        results = http(broker).results("Hot")
        begun.set()
        for one in results:
            followed.append(one)
            if len(followed) == len(READINGS):
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    while not broker.get("/v1/status")[1]["http_followers"]:
        pass
    event = headwater.Event("Temp", source="t9", id="cold", timestamp=5_000, val=1.0)
    assert mqtt(broker).publish([*READINGS, event]) == 0
    thread.join(PATIENCE_S)
    expected = [[one["id"]] for one in READINGS]
    assert sorted(ids(followed)) == expected
    rows = logged(client, len(READINGS))
    assert [offset for offset, _ in rows] == list(range(len(READINGS)))
    assert sorted(ids(one for _, one in rows)) == expected
    assert list(client.log(2, 3)) == rows[2:3]
    with pytest.raises(headwater.ClientError, match="the log ends at offset 5"):
        list(client.log(0, 99))
    client.cancel("Hot")


def test_what_the_broker_refuses_is_counted_and_what_is_no_event_is_an_error(broker):
    client = mqtt(broker)
    client.submit(HOT)
    assert client.publish([READINGS[0] | {"val": "warm"}]) == 1
    for wrong, why in [
        ({"val": 1.0}, "needs a type and a source"),
        (READINGS[0] | {"val": float("nan")}, "no event as JSON has it"),
        (READINGS[0] | {"source": 5}, "expected a text"),
    ]:
        with pytest.raises(headwater.ClientError, match=why):
            client.publish([wrong])
    for unfit in (READINGS[0], "x", [5]):
        with pytest.raises(TypeError):
            client.publish(unfit)
    client.cancel("Hot")


def test_large_events_go_in_several_payloads_and_one_that_is_too_large_alone(broker):
    client = mqtt(broker)
    client.submit(HOT.replace("val: float", "val: float, note: text"))
    before = len(list(http(broker).log()))
    large = [
        {"type": "Temp", "source": "t5", "id": f"g{n}", "timestamp": 9_000 + n, "val": 40.0}
        | {"note": "n" * (2_000_000 if n == 20 else 50_000)}
        for n in range(40)
    ]
    assert client.publish(large) == 1
    found = sorted(ids(one for _, one in logged(http(broker), 39, before)))
    assert found == sorted([f"g{n}"] for n in range(40) if n != 20)
    client.cancel("Hot")


def test_what_goes_by_the_other_face_says_so(broker):
    with pytest.raises(headwater.ClientError, match="published by MQTT"):
        http(broker).publish(READINGS)
    for call in (mqtt(broker).results, mqtt(broker).log):
        with pytest.raises(headwater.ClientError, match="by HTTP"):
            next(call())


def test_who_is_not_there_is_told_apart_from_who_refuses(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    for scheme in ("http", "mqtt"):
        with pytest.raises(headwater.ClientError, match=r"refused; is it running\?$") as told:
            headwater.Client(f"{scheme}://127.0.0.1:{port}", timeout_s=2).subscriptions()
        assert not told.value.reached
    with pytest.raises(headwater.ClientError, match=r"refused; is it running\?$") as told:
        headwater.Client(f"mqtt://127.0.0.1:{port}", timeout_s=2).publish(READINGS)
    assert not told.value.reached
    with pytest.raises(TypeError, match="an address of type int"):
        headwater.Client(5)
    with pytest.raises(ValueError, match="found timeout_s 0"):
        headwater.Client(timeout_s=0)
    with pytest.raises(TypeError, match="a text of type bytes"):
        headwater.Client().submit(HOT.encode())
    with pytest.raises(headwater.ClientError, match="address ftp://x: expected http://"):
        headwater.Client("ftp://x")


class Counted(headwater.Driver):
    """A device of so many readings; `at` are calls to make before a reading."""

    def __init__(self, count, at=None):
        super().__init__("device-1", "Temp", location="house/hall")
        self.count, self.at, self.said = count, at or {}, []

    def start(self):
        self.said.append("start")

    def read(self):
        number = len(self.said) - 1
        self.at.get(number, lambda: None)()
        if number == self.count:
            return None
        self.said.append(number)
        return {"id": f"r{number}", "val": 40.0}

    def stop(self):
        self.said.append("stop")


def test_a_device_is_read_to_its_end_and_then_withdrawn(broker):
    client = http(broker)
    client.submit(HOT + "assign where_at = Temp.location")
    before = [offset for offset, _ in client.log()]
    device = Counted(3)
    device.run(f"mqtt://127.0.0.1:{broker.port()}")
    assert device.said == ["start", 0, 1, 2, "stop"]
    found = [one for _, one in logged(client, 3, len(before))]
    assert ids(found) == [["r0"], ["r1"], ["r2"]]
    assert {one["values"]["where_at"] for one in found} == {"house/hall"}
    assert device.refused == 0
    client.cancel("Hot")


def test_what_a_device_raises_ends_the_driver_and_closes_the_device(broker):
    def broken():
        raise RuntimeError("the device is gone")

    device = Counted(3, {1: broken})
    with pytest.raises(RuntimeError, match="the device is gone"):
        device.run(f"mqtt://127.0.0.1:{broker.port()}")
    assert device.said == ["start", 0, "stop"]


def test_a_broker_that_was_killed_gets_what_it_had_not_acknowledged_and_in_order(tmp_path):
    """In another order the earlier readings would be late."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = CONFIG.replace("[mqtt]\nport = 0", f"[mqtt]\nport = {port}")
    brokers = [RunningBroker(tmp_path, config, "--set", f"broker.data_dir={tmp_path / 'data'}")]

    def again():
        brokers[0].process.kill()
        brokers[0].process.wait(PATIENCE_S)
        flags = ("--set", f"broker.data_dir={tmp_path / 'data'}")
        time.sleep(1.2)  # longer than the lateness
        brokers.append(RunningBroker(tmp_path, config, *flags).__enter__())

    try:
        brokers[0].__enter__()
        http(brokers[0]).submit(HOT)
        slowly = dict.fromkeys(range(21, 40), lambda: time.sleep(0.1))  # while it is dialled again
        device = Counted(40, {20: again, **slowly})
        device.run(f"mqtt://127.0.0.1:{port}")
        found = ids(one for _, one in logged(http(brokers[1]), 40))
        assert sorted(found) == sorted([f"r{n}"] for n in range(40))
    finally:
        for one in brokers:
            one.__exit__()


def test_wrong_use_of_a_driver_is_told_at_once(broker):
    with pytest.raises(TypeError, match="found place, expected location"):
        headwater.Driver("device-1", "Temp", place="hall")
    with pytest.raises(ValueError, match="needs a name"):
        headwater.Driver("", "Temp")
    with pytest.raises(NotImplementedError, match="Driver says nowhere how it is read"):
        headwater.Driver("device-1", "Temp").run(f"mqtt://127.0.0.1:{broker.port()}")
    with pytest.raises(headwater.ClientError, match="no mqtt://"):
        Counted(1).run(f"http://127.0.0.1:{broker.port('http')}")


def test_the_page_shows_what_runs(broker, capsys):
    shown = re.compile(r"^```python \w+\.py\n(.*?)^```", re.DOTALL | re.MULTILINE)
    blocks = shown.findall(PAGE.read_text("utf-8"))
    watch, sense, thermometer = (
        block.replace("127.0.0.1:8080", f"127.0.0.1:{broker.port('http')}").replace(
            "127.0.0.1:1883", f"127.0.0.1:{broker.port()}"
        )
        for block in blocks
    )
    seen = threading.Event()

    def sending():  # until it was followed when it came
        while not seen.wait(0.2):
            exec(compile(sense, "sense.py", "exec"), {"__name__": "sense"})

    sender = threading.Thread(target=sending)
    sender.start()
    try:
        exec(compile(watch, "watch.py", "exec"), {"__name__": "watch"})
    finally:
        seen.set()
        sender.join(PATIENCE_S)
    assert capsys.readouterr().out == "['Hot']\n{'Temp': {'val': 31.5}}\n"
    offset = len(list(http(broker).log()))
    exec(compile(thermometer, "thermometer.py", "exec"), {"__name__": "thermometer"})
    found = [one["values"]["Temp"]["val"] for _, one in logged(http(broker), 2, offset)]
    assert sorted(found) == [31.5, 33.0]  # both may be of one millisecond, ordered by their ids
    http(broker).cancel("Hot")


def test_where_a_broker_has_users_they_are_asked_for(tmp_path):
    rights = tmp_path / "rights.toml"
    anna = (
        f'[users.anna]\nroles = ["subscribe", "publish"]\npassword = "{hash_password("right")}"\n'
    )
    rights.write_text(anna)
    config = CONFIG.replace("[broker]", f'[broker]\nrights = "{rights}"')
    with RunningBroker(tmp_path, config) as one:
        for scheme, face in (("http", "http"), ("mqtt", "mqtt")):
            address = f"{scheme}://127.0.0.1:{one.port(face)}"
            known = headwater.Client(address, user="anna", password="right")
            assert known.subscriptions() == []
            for wrong in ({}, {"user": "anna", "password": "wrong"}):
                with pytest.raises(headwater.ClientError) as told:
                    headwater.Client(address, **wrong).subscriptions()
                assert told.value.reached
        assert known.publish(READINGS) == 0
        with pytest.raises(headwater.ClientError, match="refused the connection: bad user name"):
            headwater.Client(address, user="anna", password="wrong").publish(READINGS)
        Counted(1).run(address, user="anna", password="right")


def test_a_token_stands_for_a_user_by_http(tmp_path, monkeypatch):
    token = new_token()
    rights = f'[tokens.probe]\nroles = ["look"]\ndigest = "{token_digest(token)}"\n'
    (tmp_path / "rights.toml").write_text(rights)
    config = CONFIG.replace("[broker]", '[broker]\nrights = "rights.toml"')
    with RunningBroker(tmp_path, config) as running:
        address = f"http://127.0.0.1:{running.port('http')}"
        assert headwater.Client(address, token=token).subscriptions() == []
        with pytest.raises(headwater.ClientError, match="does not take this token"):
            headwater.Client(address, token=f"{token}x").subscriptions()
        monkeypatch.setenv("HEADWATER_TOKEN", token)
        assert headwater.Client(address).subscriptions() == []
    for address, user in (("http://127.0.0.1", "anna"), ("mqtt://127.0.0.1", None)):
        with pytest.raises(headwater.ClientError, match="stands for a user"):
            headwater.Client(address, user=user, token=token)
