"""The tables that a broker offers: its directory's files by name, and none besides."""

import os

import pytest

from broker.driver import reference_tables as tables
from broker.driver.reference_tables import TablesError, load_tables
from tests.broker.running import CONFIG, RunningBroker, refused

SPECIFICATION = """
event Seen(tag: int)
table Tags from "tags.csv" key tag
subscription Known from me to a detect Seen(Tags[tag].owner = "anna")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tags.csv").write_text("tag,owner\n1,anna\n2,bert\n")
    (tmp_path / "notes.txt").write_text("no table")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")  # reading it would wait for ever
    return tmp_path


def test_each_table_is_there_by_its_name(folder):
    assert load_tables(str(folder)) == {"tags.csv": "tag,owner\n1,anna\n2,bert\n"}
    assert load_tables("") == {}


def test_what_is_no_table_is_a_sentence(folder, monkeypatch):
    with pytest.raises(TablesError, match="no such directory"):
        load_tables(str(folder / "nowhere"))
    with pytest.raises(TablesError, match="no such directory"):
        load_tables(str(folder / "tags.csv"))
    (folder / "bad.csv").write_bytes(b"tag\n\xff\n")
    with pytest.raises(TablesError, match=r"bad\.csv:2:1: not UTF-8"):
        load_tables(str(folder))
    (folder / "bad.csv").unlink()
    monkeypatch.setattr(tables, "BYTES_MAX", 10)
    with pytest.raises(TablesError, match="more than 10 bytes"):
        load_tables(str(folder))
    monkeypatch.setattr(tables, "FILES_MAX", 0)
    with pytest.raises(TablesError, match="at most 0 are read"):
        load_tables(str(folder))


def test_a_specification_reaches_the_tables_of_the_broker_and_no_other_file(folder):
    """Neither above the directory nor by its whole path nor what is no table."""
    flags = [f"--set=broker.tables={folder}", f"--set=broker.data_dir={folder}/data"]
    with RunningBroker(folder, CONFIG, *flags) as broker:
        for name in ("../tags.csv", f"{folder}/tags.csv", "notes.txt", "broker.toml", "pipe.csv"):
            text = SPECIFICATION.replace("tags.csv", name)
            status, answer = broker.get("/v1/subscriptions", "POST", text.encode())
            assert status == 422, name
            assert answer["errors"][0].get("line") == 3, answer
        status, answer = broker.get("/v1/subscriptions", "POST", SPECIFICATION.encode())
        assert (status, answer["subscriptions"]) == (200, ["Known"])
        assert broker.end() == 0


def test_a_directory_that_is_not_there_is_told_at_the_start(tmp_path):
    flags = [f"--set=broker.data_dir={tmp_path}/data", "--set=mqtt.port=0", "--set=http.port=0"]
    status, errors = refused([*flags, f"--set=broker.tables={tmp_path}/nowhere"])
    assert status == 2
    (line,) = errors.splitlines()
    assert line.startswith(f"headwater: {tmp_path}/nowhere: there is no such directory of tables")
