"""The program in a package's preinst that tells data of a newer version from its own."""

import asyncio
import sqlite3
import subprocess

import data_formats
import deb
import pytest

from broker.core.broker import BrokerOptions
from broker.core.recovery import durable, records
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import make_limits
from broker.mqtt.storage.rows import KEPT
from broker.store import RESULTS, Store

KNOWN = deb.known_formats()


def snapshot():
    core = DurableBroker(BrokerOptions(), make_limits())
    return records.frame_snapshot(7, core.snapshot())


@pytest.fixture
def folder(tmp_path):
    """What a broker keeps, written by this version's own code."""
    journal = tmp_path / "broker/journal"
    journal.mkdir(parents=True)
    first = records.header(8, 3) + records.frame(8, b"data", salt=3)
    (journal / "00000000000000000008-0000.segment").write_bytes(first)
    (journal / "00000000000000000007.snapshot").write_bytes(snapshot())

    async def made():
        url = f"sqlite:///{tmp_path}/broker/headwater.db"
        await Store.open(url, parts=(RESULTS, KEPT)).close()

    asyncio.run(made())
    return tmp_path / "broker"


def refused(folder, monkeypatch, capsys):
    """What `main` says of the folder; empty where it has nothing against it."""
    monkeypatch.setattr(data_formats, "CONFIG", folder.parent / "none")
    monkeypatch.setattr(data_formats, "data_folders", lambda: [folder])
    status = data_formats.main([f"{kind}={version}" for kind, version in KNOWN.items()])
    sentences = capsys.readouterr().err
    assert (status == 1) == bool(sentences)
    return sentences


def test_this_versions_data_have_the_formats_that_it_knows(folder, monkeypatch, capsys):
    before = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    assert data_formats.formats_of(folder) == KNOWN
    assert refused(folder, monkeypatch, capsys) == ""
    after = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    assert after == before, "to look changes nothing, and leaves nothing beside the database"


def test_a_newer_segment_is_told(folder, monkeypatch, capsys):
    monkeypatch.setattr(records, "VERSION", KNOWN["journal"] + 1)
    (folder / "journal/00000000000000000009-0000.segment").write_bytes(records.header(9))
    sentence = f"journal has format {KNOWN['journal'] + 1}"
    assert sentence in refused(folder, monkeypatch, capsys)


def test_a_newer_snapshot_is_told(folder, monkeypatch, capsys):
    monkeypatch.setattr(durable, "SNAPSHOT_VERSION", KNOWN["snapshot"] + 1)
    (folder / "journal/00000000000000000007.snapshot").write_bytes(snapshot())
    sentences = refused(folder, monkeypatch, capsys)
    assert f"snapshot has format {KNOWN['snapshot'] + 1}" in sentences
    assert "headwater restore" in sentences
    assert str(folder) in sentences


@pytest.mark.parametrize("part", ["results", "mqtt"])
def test_a_newer_database_is_told(folder, part, monkeypatch, capsys):
    """Also where the change still stands in the log beside the file, as after a power cut."""
    database = sqlite3.connect(folder / "headwater.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("UPDATE headwater_format SET version = version + 1 WHERE part = ?", (part,))
    assert (folder / "headwater.db-wal").stat().st_size > 0
    assert f"{part} has format {KNOWN[part] + 1}" in refused(folder, monkeypatch, capsys)
    database.close()
    assert f"{part} has format {KNOWN[part] + 1}" in refused(folder, monkeypatch, capsys)


def test_what_is_no_data_is_left_to_the_broker(tmp_path, monkeypatch, capsys):
    assert refused(tmp_path / "none", monkeypatch, capsys) == ""
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/torn.segment").write_bytes(records.SEGMENT_MAGIC[:5])
    (tmp_path / "journal/torn.snapshot").write_bytes(records.SNAPSHOT_MAGIC)
    (tmp_path / "headwater.db").write_bytes(b"no database")
    assert refused(tmp_path, monkeypatch, capsys) == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ["home/broker"]),
        ("not toml", ["home/broker"]),
        ('[broker]\ndata_dir = "other"', ["home/other"]),
        ('[broker]\ndata_dir = "shared/*"', ["home/shared/1", "home/shared/2"]),
    ],
)
def test_the_folder_is_that_of_the_configuration(tmp_path, text, names):
    for number in ("1", "2"):
        (tmp_path / "home/shared" / number).mkdir(parents=True)
    if text is not None:
        (tmp_path / "broker.toml").write_text(text)
    folders = data_formats.data_folders(tmp_path / "broker.toml", tmp_path / "home")
    assert folders == [tmp_path / name for name in names]


def test_the_script_of_the_package_is_one_that_a_shell_runs(tmp_path):
    """Here no broker has data, so it has nothing to say."""
    script = tmp_path / "preinst"
    script.write_text(deb.preinst())
    done = subprocess.run(["sh", script, "install"], capture_output=True, text=True, check=False)
    if data_formats.CONFIG.exists() or data_formats.HOME.exists():
        pytest.skip("a broker is installed on this machine")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
