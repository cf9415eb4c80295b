"""The catalogue on disk against a dictionary, and over a restart."""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.store import RESULTS, CatalogueEntry, Store, StoredCatalogue
from broker.store.listing import escaped, plain

AWKWARD = "\0\ud800\udfff\ue000\ue000004100ab"


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[StoredCatalogue]:
    store = Store.open(url, parts=[RESULTS])
    try:
        yield StoredCatalogue(store)
    finally:
        await store.close()


names = st.sampled_from(["Frost", "Heat", "ünï/cödé", AWKWARD])
subscribers = st.sampled_from(["team", "me"])
texts = st.sampled_from(["event A(v: int)", "", AWKWARD, "x" * 20_000])
groups = st.lists(st.tuples(subscribers, names), max_size=3, unique=True)


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[CatalogueEntry], list[tuple[str, str]]]:
    """Some come, and others go."""
    client = draw(st.sampled_from(["cli", AWKWARD]))
    coming = [
        CatalogueEntry(
            *key, draw(st.integers(1, 4)), "alerts", client, draw(st.booleans()), 7, draw(texts)
        )
        for key in draw(groups)
    ]
    there = {(one.subscriber, one.subscription) for one in coming}
    return coming, [key for key in draw(groups) if key not in there]


def apply(model: dict[tuple[str, str], CatalogueEntry], coming, leaving) -> None:
    for key in (*leaving, *((one.subscriber, one.subscription) for one in coming)):
        model.pop(key, None)
    model.update({(one.subscriber, one.subscription): one for one in coming})


@settings(max_examples=15)
@given(doings=st.lists(changes(), max_size=8))
def test_the_catalogue_is_a_dictionary_that_outlasts_the_process(doings):
    """In the order in which its rows were put; no text is kept that no row is of."""
    model: dict[tuple[str, str], CatalogueEntry] = {}

    async def run(folder: Path) -> None:
        url = f"sqlite:///{folder / 'headwater.db'}"
        async with opened(url) as catalogue:
            for coming, leaving in doings:
                catalogue.change(coming, leaving)
                apply(model, coming, leaving)
        async with opened(url) as catalogue:
            assert await catalogue.all() == list(model.values())
        with contextlib.closing(sqlite3.connect(folder / "headwater.db")) as database:
            kept = [plain(one) for (one,) in database.execute("SELECT text FROM catalogue_texts")]
        assert set(kept) == {one.text for one in model.values()}

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))


@given(st.text(st.sampled_from("a0\0\ud800\udfff\ue000\U0001f600")))
def test_what_is_escaped_comes_back_and_any_database_takes_it(said):
    stored = escaped(said)
    assert plain(stored) == said
    assert "\0" not in stored.encode().decode()


def test_a_text_of_many_subscriptions_is_stored_once(tmp_path):
    text = "event A(v: int)\n" * 1000
    entries = [
        CatalogueEntry("team", f"S{n}", 1, "alerts", "cli", False, 5, text) for n in range(300)
    ]

    async def run() -> None:
        url = f"sqlite:///{tmp_path / 'headwater.db'}"
        async with opened(url) as catalogue:
            catalogue.change(entries)
        async with opened(url) as catalogue:
            found = await catalogue.all()
        assert found == entries
        assert len({id(one.text) for one in found}) == 1  # nor is it read more than once

    asyncio.run(run())
    with contextlib.closing(sqlite3.connect(tmp_path / "headwater.db")) as database:
        assert database.execute("SELECT COUNT(*) FROM catalogue").fetchone() == (300,)
        assert database.execute("SELECT text FROM catalogue_texts").fetchall() == [(text,)]


def test_who_installs_is_told_when_it_is_durable(tmp_path):
    async def run() -> None:
        async with opened(f"sqlite:///{tmp_path / 'headwater.db'}") as catalogue:
            future = asyncio.get_running_loop().create_future()
            entry = CatalogueEntry("team", "Frost", 1, "alerts", "cli", False, 5, "text")
            catalogue.change([entry], [], future.set_result)
            assert await future is None
            assert await catalogue.all() == [entry]

    asyncio.run(run())
