"""Millions of spoilt inputs at every door but MQTT's and HTTP's, which have tests of their own.

None of them may raise anything out of what it is brought to, and what comes next is answered as
ever. Each test is a shard, repeated by its seed.
"""

import pytest

from tests.fuzz import faces

FAST = {faces.Payloads: 2_000, faces.Texts: 300, faces.LinkBytes: 2_000, faces.Frames: 20_000}
# In all 7.8 million; with those of MQTT and HTTP ten.
LONG = {
    faces.Payloads: 30_000,
    faces.Texts: 3_000,
    faces.LinkBytes: 25_000,
    faces.Frames: 20_000,
}
SHARDS = 100


@pytest.mark.parametrize("face", FAST, ids=lambda face: face.__name__)
def test_spoilt_inputs_break_nothing(face):
    face(-1).bring(FAST[face])


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SHARDS))
@pytest.mark.parametrize("face", LONG, ids=lambda face: face.__name__)
def test_millions_of_spoilt_inputs_break_nothing(face, seed):
    face(1_000 * seed).bring(LONG[face])
