"""The routes of the log of results: the part of the table that a consumer needs.

Owns their paths, parameters and shapes. Must not know how they are answered. Invariant: offsets are
whole numbers from 0, times are milliseconds, and every answer names the log's epoch.
"""

from typing import Final

from broker.http.log_formats import ARROW_TYPE, FORMATS
from broker.http.route import COUNT, TEXT, Answer, Parameter, Route, Schema, shape_of

TIME: Final[Schema] = {"type": "integer"}
_GAP: Final = shape_of("from to", **{"from": COUNT, "to": COUNT})
_INHERITED: Final = shape_of(
    "home epoch from to runs",
    home=TEXT,
    epoch=TEXT,
    runs={"type": "array", "items": {"type": "array", "items": COUNT}},
    **{"from": COUNT, "to": COUNT},
)
_CONSUMER: Final[dict[str, Schema]] = {
    "consumer": TEXT,
    "offset": COUNT,
    "acked_at": TIME,
    "missed": COUNT,
    "gap": _GAP,
}

LOG_SCHEMAS: Final[dict[str, Schema]] = {
    "LogOffsets": shape_of(
        "epoch earliest end rows_max",
        epoch=TEXT,
        earliest=COUNT,
        end=COUNT,
        rows_max=COUNT,
        settled={"type": ["integer", "null"]},
        subscriptions=COUNT,
        behind=TEXT,
        inherited={"type": "array", "items": _INHERITED},
    ),
    "LogRange": shape_of(
        "epoch from to rows",
        epoch=TEXT,
        **{"from": COUNT, "to": COUNT},
        rows={
            "type": "array",
            "items": shape_of(
                "offset result", offset=COUNT, result={"$ref": "#/components/schemas/Result"}
            ),
        },
    ),
    "LogProblem": shape_of(
        "ok errors epoch earliest end",
        ok={"type": "boolean", "enum": [False]},
        errors={"type": "array", "items": {"$ref": "#/components/schemas/Diagnostic"}},
        epoch=TEXT,
        earliest=COUNT,
        end=COUNT,
    ),
    "LogTooLarge": shape_of(
        "ok errors fits",
        ok={"type": "boolean", "enum": [False]},
        errors={"type": "array", "items": {"$ref": "#/components/schemas/Diagnostic"}},
        fits=COUNT,
    ),
    "LogAck": shape_of("epoch consumer offset acked_at missed", epoch=TEXT, **_CONSUMER),
    "LogConsumers": shape_of(
        "epoch consumers",
        epoch=TEXT,
        consumers={
            "type": "array",
            "items": shape_of("consumer offset acked_at missed", **_CONSUMER),
        },
    ),
    "LogTime": shape_of(
        "epoch offset ts", epoch=TEXT, offset=COUNT, ts={"type": ["integer", "null"]}
    ),
    "LogPlace": shape_of("epoch ts offset", epoch=TEXT, ts=TIME, offset=COUNT),
    "Done": shape_of("ok", ok={"type": "boolean", "enum": [True]}),
}

_EPOCH: Final = Parameter("epoch", "refuse with 409 unless this is the log's epoch")
_MALFORMED: Final = Answer("a parameter is missing or malformed")
_ANOTHER: Final = Answer("the log is of another epoch", "LogProblem")
_GONE: Final = Answer("retention took it; `earliest` is what is left", "LogProblem")
_NOT_YET: Final = Answer("it is not there yet; `end` is how far the log goes", "LogProblem")
_NONE: Final = Answer("this broker keeps no results, or its database fails")


def _offset(name: str, meaning: str) -> Parameter:
    return Parameter(name, meaning, schema=COUNT, needed=True)


LOG_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/v1/log/offsets",
        "log_offsets",
        "Where the log of results begins and ends",
        {
            200: Answer("results of offsets earliest … end − 1 are there", "LogOffsets"),
            400: _MALFORMED,
            409: _ANOTHER,
            503: _NONE,
        },
        parameters=(
            Parameter("after", "wait while the log ends at this offset", schema=COUNT),
            Parameter(
                "wait",
                "for at most so many seconds; 0, the default: not at all",
                schema={"type": "number", "minimum": 0},
            ),
            Parameter(
                "settled",
                "tell up to when all results are there, and wait while that is not past this time",
                schema=TIME,
            ),
            Parameter("subscriptions", "of these alone; names, separated by commas"),
            _EPOCH,
        ),
    ),
    Route(
        "GET",
        "/v1/log",
        "log_range",
        "Exactly the results of a range of offsets, for ever the same",
        {
            200: Answer(
                "the range",
                "LogRange",
                others=("application/msgpack", ARROW_TYPE),
            ),
            400: _MALFORMED,
            406: Answer("this broker lacks what the format needs"),
            409: _ANOTHER,
            410: _GONE,
            413: Answer("the range is too large; up to `fits` it is not", "LogTooLarge"),
            416: _NOT_YET,
            503: _NONE,
        },
        parameters=(
            _offset("from", "the first offset"),
            _offset("to", "the offset behind the last"),
            Parameter("format", "json, the default", schema={"type": "string", "enum": [*FORMATS]}),
            Parameter("columns", "of arrow: these alone, in this order; separated by commas"),
            Parameter(
                "subscription",
                "of arrow: results of this one alone, each value that it assigns as a typed"
                " column; may be named several times, then values are JSON",
            ),
            Parameter(
                "compression",
                "of arrow; none, the default",
                schema={"type": "string", "enum": ["none", "lz4"]},
            ),
            _EPOCH,
        ),
    ),
    Route(
        "POST",
        "/v1/log/ack",
        "log_ack",
        "Say that a consumer has everything before an offset; the first time makes it one",
        {
            200: Answer("durably noted; an older offset changes nothing", "LogAck"),
            400: _MALFORMED,
            409: _ANOTHER,
            416: _NOT_YET,
            503: Answer("as above, or there are too many consumers already"),
        },
        parameters=(
            Parameter("consumer", "its name", needed=True),
            _offset("offset", "what it wants next"),
            _EPOCH,
        ),
    ),
    Route(
        "GET",
        "/v1/log/consumers",
        "log_consumers",
        "Who reads the log, how far each has come and what it missed",
        {200: Answer("by name", "LogConsumers"), 409: _ANOTHER, 503: _NONE},
        parameters=(_EPOCH,),
    ),
    Route(
        "DELETE",
        "/v1/log/consumers/{name}",
        "log_forget",
        "Keep nothing for a consumer any more",
        {
            200: Answer("forgotten", "Done"),
            404: Answer("there is none of that name"),
            409: _ANOTHER,
            503: _NONE,
        },
        parameters=(Parameter("name", "the consumer's; `/` in it as %2F", "path"), _EPOCH),
    ),
    Route(
        "GET",
        "/v1/log/ts_at",
        "log_ts_at",
        "The latest end of all results up to and with an offset, in ms",
        {
            200: Answer("null where no result is left up to it", "LogTime"),
            400: _MALFORMED,
            409: _ANOTHER,
            410: _GONE,
            416: _NOT_YET,
            503: _NONE,
        },
        parameters=(_offset("offset", "of a result"), _EPOCH),
    ),
    Route(
        "GET",
        "/v1/log/earliest_end",
        "log_earliest_end",
        "Of the results from an offset on that end after a time, the earliest end, in ms",
        {
            200: Answer("null where there is none", "LogTime"),
            400: _MALFORMED,
            409: _ANOTHER,
            410: _GONE,
            416: _NOT_YET,
            503: _NONE,
        },
        parameters=(
            _offset("offset", "where to begin"),
            Parameter("ts", "the time, in ms", schema=TIME, needed=True),
            _EPOCH,
        ),
    ),
    Route(
        "GET",
        "/v1/log/first_offset_after",
        "log_first_offset_after",
        "The first offset whose result ends after a time",
        {
            200: Answer("the log's end where there is none yet", "LogPlace"),
            400: _MALFORMED,
            409: _ANOTHER,
            503: _NONE,
        },
        parameters=(Parameter("ts", "the time, in ms", schema=TIME, needed=True), _EPOCH),
    ),
)
