"""kill -9 under load: every acknowledged event took part, every result is in the outbox once."""

import asyncio
import json

import pytest

from tests.broker.durability.lives import NAMES, survive


def said(result):
    """All but when it was found."""
    return json.dumps({k: v for k, v in result.items() if k != "detected_at"}, sort_keys=True)


def check(lives):
    """What is stored is what one process that nobody kills finds, each once."""
    rows = lives.stored()
    assert [offset for offset, _, _ in rows] == list(range(len(rows)))
    assert len({id_ for _, id_, _ in rows}) == len(rows)
    assert all(id_ == result["id"] for _, id_, result in rows)
    expected, until_ms = lives.expected()
    wanted = sorted(said(result) for result in expected if result["end"] <= until_ms)
    found = sorted(said(result) for _, _, result in rows if result["end"] <= until_ms)
    assert found == wanted
    assert {result["subscription"] for _, _, result in rows} == NAMES
    assert all(source.acknowledged == len(source.events) for source in lives.sources)
    # Who follows in a session that is kept gets every result, at least once.
    assert set(lives.follower.ids) == {id_ for _, id_, _ in rows}
    # Who ends as one should leaves nothing to be handled again.
    assert [path.suffix for path in (lives.folder / "data" / "journal").iterdir()] == [".snapshot"]


@pytest.mark.timeout(60)
def test_five_kills_lose_and_double_nothing(tmp_path):
    check(asyncio.run(survive(tmp_path, kills=5, seed=1)))


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2, 7))
def test_ten_kills_lose_and_double_nothing(tmp_path, seed):
    check(asyncio.run(survive(tmp_path, kills=10, seed=seed)))
