"""What the demonstration reckons and shows: moments, counts, lines."""

import io
import json

import msgspec
import pytest

from headwater.demo.moments import ResultMoments
from headwater.demo.screen import ALWAYS_SHOWN, Screen
from headwater.demo.tally import ResultTally, quantile_ms

MINUTE_MS = 60_000


def result(name="A", **fields):
    return {"subscription": name, "id": "r1", "end": 0, "events": {}, **fields}


# --- moments ----------------------------------------------------------------------------------


def two_stations() -> ResultMoments:
    moments = ResultMoments({"Mean": 10 * MINUTE_MS})
    moments.advertised("a")
    moments.advertised("b")
    return moments


def test_a_result_can_be_known_when_its_last_reading_is_sent():
    moments = two_stations()
    moments.published("a", "a-1", 1000, 10.0)
    moments.published("b", "b-1", 2000, 11.0)
    moments.published("a", "a-2", 3000, 12.0)
    assert moments.of(result(events={"x": ["a-1"]})) == 10.0
    assert moments.of(result(events={"x": ["b-1"], "y": ["a-1"]})) == 11.0
    assert moments.of(result(events={"x": ["b-1", "a-2"]})) == 12.0


def test_a_result_of_a_reading_never_sent_has_no_moment():
    moments = two_stations()
    moments.published("a", "a-1", 1000, 10.0)
    assert moments.of(result(events={"x": ["a-1", "a-9"]})) is None
    assert moments.of(result(events={})) is None


def test_a_window_is_known_when_every_station_has_passed_its_end():
    moments = two_stations()
    window = result("Mean", end=9 * MINUTE_MS)
    moments.published("a", "a-1", 9 * MINUTE_MS, 1.0)
    moments.published("b", "b-1", 9 * MINUTE_MS + 1, 2.0)
    moments.published("a", "a-2", 11 * MINUTE_MS, 3.0)
    assert moments.of(window) is None
    moments.published("b", "b-2", 10 * MINUTE_MS - 1, 4.0)
    assert moments.of(window) is None
    moments.published("b", "b-3", 10 * MINUTE_MS, 5.0)
    assert moments.of(window) == 5.0
    assert moments.of(result("Mean", end=10 * MINUTE_MS)) is None


def test_a_station_without_a_reading_holds_windows_and_one_that_goes_lets_them_pass():
    moments = two_stations()
    window = result("Mean", end=9 * MINUTE_MS)
    moments.published("a", "a-1", 30 * MINUTE_MS, 1.0)
    assert moments.of(window) is None
    moments.withdrawn("b", 2.0)
    assert moments.of(window) == 2.0
    assert moments.of(result("Mean", end=31 * MINUTE_MS)) is None
    moments.withdrawn("a", 3.0)
    assert moments.of(result("Mean", end=31 * MINUTE_MS)) == 3.0


# --- tally ------------------------------------------------------------------------------------


def tally(**expected) -> ResultTally:
    moments = two_stations()
    moments.published("a", "a-1", 1000, 10.0)
    return ResultTally(expected, moments)


def encoded(**fields) -> bytes:
    return msgspec.json.encode(result(**{"events": {"x": ["a-1"]}, **fields}))


def test_a_result_is_counted_once_and_timed():
    counted = tally(A=2)
    assert counted.take(encoded(id="r1"), 10.5)["id"] == "r1"
    assert counted.take(encoded(id="r1"), 11.0) is None
    assert not counted.complete
    counted.take(encoded(id="r2"), 12.0)
    assert counted.complete
    assert counted.counts == {"A": 2}
    assert counted.latencies_s == {"A": [0.5, 2.0]}
    assert (counted.first_s, counted.last_s) == (10.5, 12.0)
    counted.judge()
    assert counted.complaints == []


def test_what_is_missing_or_too_much_is_complained_of():
    counted = tally(A=1, B=2, C=3)
    for number in range(2):
        counted.take(encoded(id=f"a{number}"), 11.0)
    counted.take(encoded(id="b", subscription="B"), 11.0)
    counted.judge()
    assert counted.complaints == [
        "A has 2 results, 1 were expected",
        "B has 1 results, 2 were expected",
        "C has no result, 3 were expected",
    ]


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"nonsense", "no result"),
        (b"[]", "no result"),
        (b'{"subscription": "A"}', "no result"),
        (encoded(subscription="Z"), "Z came, which nobody asked for"),
        (encoded(events={"x": ["z-1"]}), "never sent"),
    ],
)
def test_what_should_not_come_is_complained_of_once(payload, says):
    counted = tally(A=1)
    counted.take(payload, 11.0)
    counted.take(payload, 11.0)
    (complaint,) = counted.complaints
    assert says in complaint


def test_quantiles_are_of_the_values_themselves():
    seconds = [index / 1000 for index in range(100, 0, -1)]
    assert quantile_ms(seconds, 0.5) == pytest.approx(50)
    assert quantile_ms(seconds, 0.99) == pytest.approx(99)
    assert quantile_ms([0.25], 0.99) == pytest.approx(250)
    assert quantile_ms([], 0.5) is None


# --- screen -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_many_results_at_a_time_are_sampled_and_counted():
    out = io.StringIO()
    screen = Screen(as_json=False, out=out, side=io.StringIO())
    for number in range(1000):
        screen.result(result(id=str(number), values={}), now_s=number / 1000)
    shown = out.getvalue().count("\n")
    assert ALWAYS_SHOWN < shown < ALWAYS_SHOWN + 6
    assert screen.left_out == 1000 - shown
    screen.result(result("B", values={}), now_s=1.0)
    assert out.getvalue().splitlines()[-1].endswith(" B")


def test_programs_get_every_result_and_nothing_else():
    out, side = io.StringIO(), Terminal()
    screen = Screen(as_json=True, out=out, side=side)
    screen.say("starting")
    screen.progress(1, 2, "")
    for number in range(100):
        screen.result(result(id=str(number)), now_s=0.0)
    screen.summary({"events": 1}, ["for people"])
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["id"] for line in lines[:-1]] == [str(number) for number in range(100)]
    assert lines[-1] == {"summary": {"events": 1}}
    assert side.getvalue() == ""


def test_the_progress_line_is_drawn_on_a_terminal_alone():
    side, pipe = Terminal(), io.StringIO()
    for stream in (side, pipe):
        Screen(as_json=False, out=io.StringIO(), side=stream).progress(5, 10, "words")
    assert "[############............] 5 of 10  words" in side.getvalue()
    assert pipe.getvalue() == ""


def test_a_line_wipes_the_progress_line_first_and_draws_it_again():
    stream = Terminal()
    screen = Screen(as_json=False, out=stream, side=stream)
    screen.progress(5, 10, "words")
    screen.say("something")
    wipe = "\r\x1b[2K"
    assert f"{wipe}something\n{wipe}[#" in stream.getvalue()
    screen.end_progress()
    screen.say("last")
    assert stream.getvalue().endswith(f"{wipe}last\n")
