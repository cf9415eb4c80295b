"""Events by HTTP: what comes by MQTT, with the same rights, promises and refusals."""

import asyncio
import json
import random
import re
import subprocess

import pytest

from broker.credentials import hash_password
from broker.http import HttpOptions
from broker.http.events.parts import PartError, split_events
from tests.broker.http.fakes import FakeBroker, talk
from tests.broker.running import CONFIG, ROOT, RunningBroker, client, take

JSON, NDJSON = "application/json", "application/x-ndjson"
PAGE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


def split(body, media=JSON, type_name="", source="", events_max=10):
    return split_events(body, media, type_name, source, events_max)


def shown(parts):
    return [(part.type_name, part.source, part.data, part.number) for part in parts]


def test_an_event_an_array_and_lines_are_handed_on_byte_for_byte():
    """Read and written again, numbers would be others."""
    event = b'{"type": "T", "source": "t7", "val": 1.0000000000000000001}'
    assert shown(split(event)) == [("T", "t7", event, 1)]
    assert shown(split(b" [" + event + b" , " + event + b"]")) == [
        ("T", "t7", event, 1),
        ("T", "t7", event, 2),
    ]
    assert shown(split(event + b"\r\n\n" + event, NDJSON)) == [
        ("T", "t7", event, 1),
        ("T", "t7", event, 3),
    ]


def test_type_and_source_may_stand_behind_the_path_and_the_events_own_win():
    assert shown(split(b"{}", type_name="T", source="t7"))[0][:2] == ("T", "t7")
    own = b'{"type": "U", "srcid": "t8"}'
    assert shown(split(own, type_name="T", source="t7"))[0][:2] == ("U", "t8")


@pytest.mark.parametrize(
    ("body", "media", "unit", "number", "words"),
    [
        (b"", JSON, "event", 1, "no event"),
        (b"[]", JSON, "event", 1, "holds no event"),
        (b"\n\n", NDJSON, "line", 1, "holds no event"),
        (b'[{"type":"T","source":"a"},{"type":"T"}]', JSON, "event", 2, "no `source`"),
        (b'[{"type":"T","source":"a"},{"source":"a"}]', JSON, "event", 2, "no `type`"),
        (b'{"type":"T","source":"a"}\n{"type":', NDJSON, "line", 2, "no event"),
        (b'[{"type":"T","source":"a"},', JSON, "event", 1, "no array"),
        (b'{"type":"T","source":7}', JSON, "event", 1, "`$.source`"),
        (b"\xff", NDJSON, "line", 1, "no event"),
        (b"[" + b",".join([b'{"type":"T","source":"a"}'] * 11) + b"]", JSON, "event", 11, "10"),
        (b"[" * 100_000, JSON, "event", 1, "no array"),
    ],
)
def test_a_body_with_one_part_that_is_no_event_is_refused_with_its_place(
    body, media, unit, number, words
):
    with pytest.raises(PartError, match=re.escape(words)) as refusal:
        split(body, media)
    assert (refusal.value.unit, refusal.value.number) == (unit, number)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_a_body_is_it_is_split_or_refused(seed):
    draw = random.Random(seed)
    good = b'[{"type":"T","source":"t7","val":[1,{"a":null}]}]\n'
    for _ in range(400):
        body = bytearray(good * draw.randrange(1, 3))
        for _ in range(draw.randrange(4)):
            place = draw.randrange(len(body))
            body[place : place + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        try:
            parts = split(bytes(body), draw.choice((JSON, NDJSON)), "T", "t7")
        except PartError:
            continue
        assert all(part.data in bytes(body) for part in parts)


def test_a_body_is_bounded_and_of_a_type_that_is_known():
    broker = FakeBroker()
    event = b'{"type":"T","source":"t7"}'

    async def scenario(http):
        async def status(body, media):
            answer = await http.post("/v1/events", data=body, headers={"Content-Type": media})
            assert (await answer.json())["ok"] == (answer.status == 200)
            return answer.status

        assert await status(event, JSON) == 200
        assert await status(event + b" " * 100, JSON) == 413
        assert await status(event, "text/plain") == 415
        assert await status(event + b"\nx", NDJSON) == 422
        assert broker.published == [("T", "t7", event)]

    talk(broker, scenario, options=HttpOptions(events_bytes_max=100, text_bytes_max=10))


def rights():
    encoded = hash_password("sesame")
    return f"""
[roles.sensor]
publish = ["events/+/{{user}}"]
[users.t7]
roles = ["sensor"]
password = "{encoded}"
[users.anna]
roles = ["administrate"]
password = "{encoded}"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "rights.toml").write_text(rights())
    config = CONFIG.replace("[broker]", '[broker]\nrights = "rights.toml"')
    with RunningBroker(folder, config, "--set", f"broker.data_dir={folder}/data") as broker:
        yield broker


@pytest.mark.program("curl")
def test_what_the_page_types_is_answered_as_it_says(site, find_program):
    """The same rights as by MQTT: one's own readings alone, and then all or none."""
    find_program("curl")
    section = PAGE[PAGE.index("## Events by HTTP") :]
    console = re.search(r"```console\n(.*?)```", section, re.DOTALL)[1]
    printed = ""
    for line in re.findall(r"^\$ (.*)$", console, re.MULTILINE):
        typed = line.replace("127.0.0.1:8080", f"127.0.0.1:{site.port('http')}")
        done = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, check=True)
        printed += f"$ {line}\n{done.stdout.rstrip()}\n"
    assert printed == console


def test_what_was_answered_is_detected_as_if_it_came_by_mqtt(site):
    """Refused ones among good ones are told with their places, and stop none of those."""
    text = "event Wind(val: float)\nsubscription Storm from anna to anna detect Wind(val > 20)\n"

    async def scenario():
        login = {"username": "anna", "password": "sesame"}
        async with client(site.port(), "headwater/results/anna/#", **login) as anna:
            curl = ["curl", "-s", "-u", "anna:sesame", f"http://127.0.0.1:{site.port('http')}"]

            async def post(path, media, body):
                words = [*curl[:-1], "-H", f"Content-Type: {media}", "--data-binary", body]
                process = await asyncio.create_subprocess_exec(
                    *words, curl[-1] + path, stdout=subprocess.PIPE
                )
                return json.loads((await process.communicate())[0])

            assert (await post("/v1/subscriptions", "text/plain", text))["ok"]
            events = [
                {"type": "Wind", "source": "t7", "id": "a", "timestamp": 1_000, "val": 30},
                {"type": "Wind", "source": "t7", "id": "b", "timestamp": 2_000, "val": "much"},
                {"type": "Wind", "source": "t7", "id": "c", "timestamp": 3_000, "val": 31},
            ]
            answer = await post("/v1/events", JSON, json.dumps(events))
            assert (answer["ok"], answer["accepted"]) == (False, 2)
            (error,) = answer["errors"]
            assert error["event"] == 2
            assert "val" in error["message"]
            results = await take(anna, 2)
            assert [result["events"]["Wind"] for _, result in results] == [["a"], ["c"]]

    asyncio.run(scenario())
