"""Pages in columns, held against the same results as JSON."""

import asyncio
import json
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.http.pages import COLUMNS, USUAL, KeptPages, PageSelection, cache, make_page
from broker.http.pages.columns import TIME_MAX_MS, TIME_MIN_MS, value_columns
from broker.http.pages.encoder import PageOrigin
from broker.http.pages.value_types import ValueTypes
from broker.store import CatalogueEntry
from language import check_text
from tests.broker.http.test_log import talk
from tests.broker.rows import row_of

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.none(),
    st.lists(st.integers(0, 9), max_size=2),
)
NAMES = ("n", "temp", "open", "tag", "id")
TYPES = {"n": "int", "temp": "float", "open": "bool", "tag": "text", "id": "text", "more": "any"}
TIMES = st.one_of(st.integers(-(10**12), 10**13), st.integers(-(2**60), 2**60))


@st.composite
def results(draw):
    """A result as a broker writes it, with values of every type under every name."""
    group = draw(st.dictionaries(st.sampled_from(("location", "hall")), SCALARS, max_size=2))
    return {
        "subscription": draw(st.sampled_from(("Frost", "Smoke", "Fröst, 2"))),
        "seq": 1,
        "id": draw(TEXTS),
        "start": draw(TIMES),
        "end": draw(TIMES),
        "certainty": draw(st.sampled_from(("yes", "maybe"))),
        "group": group,
        "values": draw(st.dictionaries(st.sampled_from((*NAMES, "location", "more")), SCALARS)),
        "events": {"t": draw(st.lists(TEXTS, max_size=2))},
    } | ({"detected_at": draw(TIMES)} if draw(st.booleans()) else {})


def rows_of(told):
    payloads = [msgspec.json.encode(one) for one in told]
    return [
        row_of(n, one["subscription"], "team", "alerts", payload)
        for n, (one, payload) in enumerate(zip(told, payloads, strict=True))
    ]


def table(data):
    return pa.ipc.open_stream(data).read_all()


def instant(ms):
    """The time that a program reads, worked out apart from the page."""
    if ms is None or not TIME_MIN_MS <= ms <= TIME_MAX_MS:
        return None
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


def as_typed(value, kind):
    """A value as its column has it, by what the page on the log says."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "int":
        return value if type(value) is int and abs(value + 0.5) < 2**63 else None
    if kind == "float":
        return float(value) if is_number else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else None


@given(st.lists(results(), max_size=6), st.booleans())
def test_columns_say_what_the_same_results_say_as_json(told, packed):
    selection = PageSelection(tuple(COLUMNS), packed=packed)
    page = table(make_page(PageOrigin("e", 0, 10, "site"), rows_of(told), selection)).to_pylist()
    assert [json.loads(row["payload"]) for row in page] == told
    for n, (row, one) in enumerate(zip(page, told, strict=True)):
        assert row["offset"] == row["log_offset"] == n
        assert (row["id"], row["subscription"]) == (one["id"], one["subscription"])
        assert (row["broker"], row["subscriber"], row["actor"]) == ("site", "team", "alerts")
        assert (row["end"], row["certainty"]) == (one["end"], one["certainty"])
        assert row["started_at"] == instant(one["start"])
        assert row["ended_at"] == instant(one["end"])
        assert row["detected_at"] == instant(one.get("detected_at"))
        for name in ("group", "values", "events"):
            assert json.loads(row[name]) == one[name]
        places = [one[part].get("location") for part in ("group", "values")]
        assert row["location"] == next((p for p in places if isinstance(p, str)), None)


@given(st.lists(results(), max_size=6))
def test_values_are_typed_and_of_another_type_null(told):
    typed = value_columns(TYPES)
    selection = PageSelection(("log_offset", *typed), ("Frost",), tuple(typed.values()))
    page = table(make_page(PageOrigin("e", 0, 10), rows_of(told), selection))
    assert page.schema.names == ["log_offset", "n", "temp", "open", "tag", "values.id", "more"]
    kinds = [pa.int64(), pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.string()]
    assert page.schema.types == [*kinds, pa.string()]
    there = [(n, one) for n, one in enumerate(told) if one["subscription"] == "Frost"]
    assert page.column("log_offset").to_pylist() == [n for n, _ in there]
    for row, (_, one) in zip(page.to_pylist(), there, strict=True):
        for name in NAMES:
            column = "values.id" if name == "id" else name
            assert row[column] == as_typed(one["values"].get(name), TYPES[name])
        more = one["values"].get("more")
        assert row["more"] is None if more is None else json.loads(row["more"]) == more


@given(st.lists(results(), max_size=4), st.permutations(tuple(COLUMNS)), st.integers(1, 6))
def test_asked_columns_alone_in_the_order_asked(told, names, count):
    asked = tuple(names[:count])
    whole = table(make_page(PageOrigin("e", 0, 10), rows_of(told), PageSelection(tuple(COLUMNS))))
    page = table(make_page(PageOrigin("e", 0, 10), rows_of(told), PageSelection(asked)))
    assert page.schema.names == list(asked)
    assert page.to_pydict() == whole.select(list(asked)).to_pydict()


# --- over HTTP -------------------------------------------------------------------------------


async def arrow(site, query):
    status, body = await site.get(f"/v1/log?format=arrow&{query}")
    assert status == 200, body
    return body


def test_a_page_over_http_is_the_range_that_json_gives(tmp_path):
    async def scenario(site):
        await site.add(10, 20, 30, 40)
        _, said = await site.get("/v1/log?from=1&to=3")
        page = table(await arrow(site, "from=1&to=3"))
        assert page.schema.names == list(USUAL)
        assert page.schema.metadata[b"epoch"].decode() == said["epoch"]
        assert page.column("offset").to_pylist() == [row["offset"] for row in said["rows"]]
        payloads = page.column("payload").to_pylist()
        assert [json.loads(one) for one in payloads] == [row["result"] for row in said["rows"]]
        assert page.column("broker").to_pylist() == ["fake", "fake"]
        fewer = table(await arrow(site, "from=0&to=4&columns=ended_at,id&compression=lz4"))
        assert fewer.schema.names == ["ended_at", "id"]
        assert [t.timestamp() for t in fewer.column("ended_at").to_pylist()] == [
            0.01, 0.02, 0.03, 0.04,
        ]  # fmt: skip
        none = table(await arrow(site, "from=0&to=4&subscription=Other&subscription=More"))
        assert none.num_rows == 0

    talk(tmp_path, scenario)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("columns=nonsense", "no nonsense"),
        ("compression=zip", "none, lz4"),
        ("&".join(f"subscription=s{n}" for n in range(101)), "at most 100"),
        ("subscription=Frost&columns=value", "no value"),
    ],
)
def test_what_is_no_column_is_refused_with_those_there_are(tmp_path, query, why):
    async def scenario(site):
        await site.add(10)
        status, body = await site.get(f"/v1/log?format=arrow&from=0&to=1&{query}")
        assert status == 400
        assert why in body["errors"][0]["message"]

    talk(tmp_path, scenario)


class CountedLog:
    """A log that counts what is read of it."""

    def __init__(self, rows):
        self.epoch, self.earliest, self.end = "e", 0, len(rows)
        self.rows, self.reads = rows, 0

    async def read(self, begin, end, _bytes_max=None):
        if begin < self.earliest:
            raise LookupError("gone")
        self.reads += begin < end
        await asyncio.sleep(0)
        return self.rows[begin:end]


def many(count):
    return rows_of([result_of(n) for n in range(count)])


def result_of(number):
    return {"subscription": "Frost", "id": f"f{number}", "end": number, "values": {"n": number}}


@pytest.fixture
def pages_of_four(monkeypatch):
    monkeypatch.setattr(cache, "PAGE_OFFSETS", 4)


@pytest.mark.usefixtures("pages_of_four")
def test_a_full_page_is_made_once_whoever_asks_and_never_changes():
    async def scenario():
        log = CountedLog(many(10))
        pages = KeptPages(log, "site")
        asked = [pages.page(4, 8, PageSelection(), 2**20) for _ in range(3)]
        first, *others = await asyncio.gather(*asked)
        assert others == [first, first]
        assert log.reads == 1
        log.rows, log.end = many(12), 12
        assert await pages.page(4, 8, PageSelection(), 2**20) == first
        assert log.reads == 1
        assert await pages.page(4, 8, PageSelection(("id",)), 2**20) != first
        assert log.reads == 2
        for _ in range(2):  # not a page: half of one, and one that was not full before
            await pages.page(5, 8, PageSelection(), 2**20)
        assert log.reads == 4
        for _ in range(2):
            await pages.page(8, 12, PageSelection(), 2**20)
        assert log.reads == 5

    asyncio.run(scenario())


@pytest.mark.usefixtures("pages_of_four")
def test_a_page_that_is_not_full_is_not_kept():
    async def scenario():
        log = CountedLog(many(6))
        pages = KeptPages(log, "site")
        assert table(await pages.page(4, 6, PageSelection(), 2**20)).num_rows == 2
        log.rows, log.end = many(8), 8
        assert table(await pages.page(4, 8, PageSelection(), 2**20)).num_rows == 4

    asyncio.run(scenario())


@pytest.mark.usefixtures("pages_of_four")
def test_what_is_kept_is_bounded_and_the_longest_unused_goes():
    async def scenario():
        log = CountedLog(many(40))
        size = len(await KeptPages(log, "site").page(0, 4, PageSelection(), 2**20))
        pages = KeptPages(log, "site", int(2.5 * size))
        for begin in (0, 4, 0, 8):  # 4 … 7 is unused for longest when the third comes
            await pages.page(begin, begin + 4, PageSelection(), 2**20)
        log.reads = 0
        await pages.page(0, 4, PageSelection(), 2**20)
        assert log.reads == 0
        await pages.page(4, 8, PageSelection(), 2**20)
        assert log.reads == 1
        tiny = KeptPages(log, "site", 10)
        for _ in range(2):
            await tiny.page(0, 4, PageSelection(), 2**20)
        assert log.reads == 3

    asyncio.run(scenario())


@pytest.mark.usefixtures("pages_of_four")
def test_a_kept_page_goes_with_its_epoch_and_with_retention():
    async def scenario():
        log = CountedLog(many(8))
        pages = KeptPages(log, "site")
        old = await pages.page(0, 4, PageSelection(), 2**20)
        log.epoch, log.rows = "f", rows_of([result_of(n + 100) for n in range(8)])
        new = table(await pages.page(0, 4, PageSelection(), 2**20))
        assert new.column("id").to_pylist() == ["f100", "f101", "f102", "f103"]
        assert table(old).column("id").to_pylist()[0] == "f0"
        log.earliest = 2
        with pytest.raises(LookupError):
            await pages.page(0, 4, PageSelection(), 2**20)

    asyncio.run(scenario())


# --- the types of values ---------------------------------------------------------------------

TEXT = """
event AirTemp(value: float, probe: text)
subscription Frost seq {seq} from {team} to alerts
detect AirTemp as t where t.value < 0
assign value = t.value, probe = t.probe, count = {count}, cold = t.value < -10
"""


def test_types_are_those_of_the_text_that_is_installed_now():
    async def scenario():
        entries = [entry("team", 1, "1")]
        asked = []

        async def all_entries():
            asked.append(None)
            return entries

        def standing(name):
            return tuple((one.subscriber, one.seq) for one in entries if one.subscription == name)

        types = ValueTypes(standing, all_entries, check_text)
        expected = {"value": "float", "probe": "text", "count": "int", "cold": "bool"}
        assert await types.of("Frost") == expected
        assert await types.of("Frost") == expected
        assert len(asked) == 1
        assert await types.of("Smoke") is None
        entries[:] = [entry("team", 2, "1.5")]
        assert (await types.of("Frost"))["count"] == "float"
        entries.append(entry("others", 1, '"one"'))
        assert (await types.of("Frost"))["count"] == "any"

    asyncio.run(scenario())


def entry(team, seq, count):
    text = TEXT.format(seq=seq, team=team, count=count)
    return CatalogueEntry(team, "Frost", seq, "alerts", "client", False, 0, text)
