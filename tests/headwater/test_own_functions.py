"""Functions of one's own: what they see, what they may give, and that none does harm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import headwater

VIDEO = "event Video(size: int, name: text)\n"


def results(detect: str, functions: dict[str, Any], *videos: dict[str, Any]) -> list[Any]:
    text = f"{VIDEO}subscription S from u to a\n{detect}"
    engine = headwater.Engine(text, functions=functions)
    events = [
        {"type": "Video", "id": f"v{at}", "source": "cam", "timestamp": at * 1000, **video}
        for at, video in enumerate(videos)
    ]
    return [one["values"] for one in engine.push(events) + engine.finish()]


def test_a_function_stands_in_conditions_and_in_assignments():
    functions = {"half": headwater.Function(lambda size: size / 2)}
    found = results(
        "detect Video(half(size) > 1)\nassign h = half(Video.size)",
        functions,
        {"size": 1},
        {"size": 5},
    )
    assert found == [{"h": 2.5}]


def test_a_function_may_take_the_event_as_a_whole():
    seen: list[Mapping[str, Any]] = []

    def faces(video: Mapping[str, Any]) -> int:
        seen.append(video)
        return int(video["size"]) + len(video["name"])

    functions = {"FaceDetect": headwater.Function(faces, "int")}
    detect = "detect Video\nassign faces = FaceDetect(Video)"
    assert results(detect, functions, {"size": 2, "name": "abc"}) == [{"faces": 5}]
    assert dict(seen[0]) == {
        "type": "Video", "id": "v0", "source": "cam", "location": None, "position": None,
        "start": 0, "end": 0, "uncertainty": 0, "size": 2, "name": "abc",
    }  # fmt: skip
    with pytest.raises(TypeError):
        seen[0]["size"] = 3  # type: ignore[index]


def test_nulls_do_not_come_to_a_function():
    def never(_: Any) -> float:
        raise AssertionError("called with null")

    function = headwater.Function(never)
    detect = "detect Video\nassign x = own(Video.size)"
    assert results(detect, {"own": function}, {}) == [{"x": None}]
    assert function.failures == 0


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ("int", 1.5), ("int", True), ("int", 2**63), ("float", "1"), ("text", 1), ("bool", 1),
        ("float", float("nan")), ("float", float("inf")), ("bytes", "x"),
    ],
)  # fmt: skip
def test_what_is_no_value_of_the_stated_type_is_null_and_counted(result: Any, value: Any):
    function = headwater.Function(lambda _: value, result)
    detect = "detect Video\nassign x = own(Video.size)"
    assert results(detect, {"own": function}, {"size": 1}, {"size": 2}) == [{"x": None}] * 2
    assert function.failures == 2
    assert function.last_failure.startswith("gave ")


def test_a_function_that_fails_stops_nothing_else():
    def fails(size: int) -> float:
        if size == 1:
            raise ValueError("no face")
        return float(size)

    function = headwater.Function(fails)
    found = results(
        "detect Video(own(size) >= 0)\nassign x = Video.size",
        {"own": function},
        {"size": 1},
        {"size": 2},
    )
    assert found == [{"x": 2}]
    assert (function.failures, function.last_failure) == (1, "ValueError: no face")


def test_the_stated_type_is_checked():
    function = headwater.Function(lambda _: "x", "text")
    text = f"{VIDEO}subscription S from u to a\ndetect Video(own(size) > 3)"
    with pytest.raises(headwater.LanguageError, match="HW301"):
        headwater.Engine(text, functions={"own": function})
    with pytest.raises(ValueError, match="expected one of int, float"):
        headwater.Function(len, "number")  # type: ignore[arg-type]


def test_another_version_is_another_result():
    def identity(version: str) -> str:
        functions = {"own": headwater.Function(lambda size: size, "int", version)}
        engine = headwater.Engine(
            f"{VIDEO}subscription S from u to a\ndetect Video\nassign x = own(Video.size)",
            functions=functions,
        )
        video = {"type": "Video", "id": "v", "timestamp": 1, "size": 1}
        return str((engine.push([video]) + engine.finish())[0]["id"])

    assert identity("1") == identity("1")
    assert identity("1") != identity("2")


def test_a_definition_keeps_what_a_function_gives():
    text = (
        f"{VIDEO}define Scored(score) detect Video assign score = own(Video.size)\n"
        "subscription S from u to a detect Scored(score > 2) assign s = Scored.score"
    )
    engine = headwater.Engine(text, functions={"own": headwater.Function(lambda size: size + 1)})
    videos = [{"type": "Video", "id": str(n), "timestamp": n, "size": n} for n in range(3)]
    found = engine.push(videos) + engine.finish()
    assert [one["values"] for one in found] == [{"s": 3.0}]


def test_what_cannot_be_called_is_refused_where_it_is_given():
    with pytest.raises(TypeError, match="found int, expected something that can be called"):
        headwater.Function(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="function own: found builtin_function_or_method"):
        headwater.Engine(VIDEO, functions={"own": len})
