"""What batches have left out is noted by names of files; a file that is no note stops nothing."""

import pytest

from server.source.places import LogPlace, Postponed, PostponedRange

LEFT = PostponedRange("b", "e1", 3, 7, 0)
PLACES = {"b": LogPlace("e1", 7)}


@pytest.mark.parametrize(
    "name", [".DS_Store", "notes.txt", "b:e1:3:7", "b:e1:3:x:0", "b:e1:3:7:0~"]
)
def test_a_foreign_file_is_passed_over(tmp_path, name):
    notes = Postponed(tmp_path)
    notes.put(LEFT)
    (tmp_path / name).touch()
    assert notes.rewound(PLACES)["b"].next == 3
    notes.forget({"b": LogPlace("e1", 7, turn=1)})
    assert [file.name for file in tmp_path.iterdir()] == [name]
