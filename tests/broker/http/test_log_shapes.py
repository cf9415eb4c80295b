"""The published shape of an answer about offsets has what brokers that took over say."""

from broker.core.standby.inheritance import Inheritances
from broker.http.log_routes import LOG_SCHEMAS


def test_what_was_taken_over_has_its_shape():
    inherited = Inheritances()
    inherited.add("hall", ("e1", 2, 9), 5, [2, 3, 8])
    [row] = inherited.before(100)
    shape = LOG_SCHEMAS["LogOffsets"]["properties"]["inherited"]["items"]
    assert sorted(shape["properties"]) == sorted(row) == sorted(shape["required"])
    assert row["runs"] == [[2, 5, 2], [8, 7, 1]]
    assert shape["properties"]["runs"]["items"]["items"]["type"] == "integer"
