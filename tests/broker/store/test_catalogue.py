"""The catalogue on disk against a dictionary, and over a restart."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.store import RESULTS, Catalogue, Entry, Store


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Catalogue]:
    store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
    try:
        yield Catalogue(store)
    finally:
        await store.close()


names = st.sampled_from(["Frost", "Heat", "ünï/cödé"])
entries = st.builds(
    Entry,
    subscriber=st.sampled_from(["team", "me"]),
    subscription=names,
    seq=st.integers(1, 4),
    client=st.just("cli"),
    installed_ms=st.integers(0, 9),
    text=st.sampled_from(["event A(v: int)", ""]),
)
doings = st.lists(
    st.one_of(st.lists(entries, max_size=3), st.tuples(st.sampled_from(["team", "me"]), names)),
    max_size=12,
)


@settings(max_examples=8)
@given(doings=doings)
def test_the_catalogue_is_a_dictionary_that_outlasts_the_process(doings):
    """A higher or equal `seq` replaces, a lower one changes nothing."""
    model: dict[tuple[str, str], Entry] = {}

    async def run(folder: Path) -> None:
        async with opened(folder) as catalogue:
            for one in doings:
                if isinstance(one, tuple):
                    catalogue.remove(*one)
                    model.pop(one, None)
                    continue
                catalogue.put(one)
                for entry in one:
                    key = (entry.subscriber, entry.subscription)
                    if key not in model or model[key].seq <= entry.seq:
                        model[key] = entry
        async with opened(folder) as catalogue:
            found = await catalogue.all()
        assert {(e.subscriber, e.subscription): e for e in found} == model
        assert len(found) == len(model)
        order = [(e.installed_ms, e.subscriber, e.subscription) for e in found]
        assert order == sorted(order)

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))


def test_who_installs_is_told_when_it_is_durable(tmp_path):
    async def run() -> None:
        async with opened(tmp_path) as catalogue:
            future = asyncio.get_running_loop().create_future()
            entry = Entry("team", "Frost", 1, "cli", 5, "text")
            catalogue.put([entry], future.set_result)
            assert await future is None
            assert await catalogue.all() == [entry]

    asyncio.run(run())
