"""Another name for a broker: where it is written, and when it is not."""

import json
from pathlib import Path

import pytest

from broker.admission.former_names import former_names
from broker.site.data_dir import claimed
from headwater.cli import main

FILE = """# ours
[log]
level = "info"
[broker]
data_dir = "data"
{name}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


def configured(folder, name):
    file = folder / "broker.toml"
    file.write_text(FILE.format(name=name))
    file.chmod(0o640)
    return file


@pytest.mark.parametrize(
    ("line", "then"),
    [
        ('name = "roof"  # of the "roof"', 'name = "hall"  # of the "roof"'),
        ("name='roof'", "name='hall'"),
        ('"name" = "roof"', '"name" = "hall"'),
    ],
)
def test_the_name_is_changed_where_it_is_configured_and_nothing_else(folder, line, then, capsys):
    file = configured(folder, line)
    assert main(["broker", "rename", "hall", "--config", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "broker": "hall", "was": "roof"}
    assert file.read_text() == FILE.format(name=then)
    assert file.stat().st_mode & 0o777 == 0o640
    assert former_names(folder / "data") == ["roof"]


def test_a_name_that_the_directory_has_is_changed_there(folder):
    (folder / "data" / "broker.name").write_text("roof\n")
    file = configured(folder, 'name = ""')
    for name in ("hall", "cellar", "roof", "attic"):
        assert main(["broker", "rename", name, "--config", str(file)]) == 0
        assert (folder / "data" / "broker.name").read_text() == f"{name}\n"
    assert former_names(folder / "data") == ["hall", "cellar", "roof"]
    assert file.read_text() == FILE.format(name='name = ""')


@pytest.mark.parametrize(
    ("line", "words", "sentence"),
    [
        ('name = "roof"', ["hall "], '"hall " is no name of a broker'),
        ('name = "roof"', ["roof"], "the broker is called roof already"),
        ('name = ""', ["hall"], "data has no name yet: the broker never ran"),
        ('name = "roof"', ["hall", "--set", "broker.name=b"], "give the new one there"),
        ('name = "roof"', ["hall", "--set", "broker.data_dir=other"], "never ran"),
        ('name = "roof"', ["hall", "--set", "broker.data_dir="], "keeps nothing"),
        ('name = "roof"', ["hall", "--set", "broker.data_dir=data/*"], "name the one with --set"),
        ('name = """roof"""', ["hall"], "broker.toml:6:1: write the new name there yourself"),
    ],
)
def test_what_cannot_be_renamed_is_refused_with_a_reason_and_left(
    folder, line, words, sentence, capsys
):
    file = configured(folder, line)
    assert main(["broker", "rename", *words, "--config", str(file)]) == 2
    assert sentence in capsys.readouterr().err
    assert file.read_text() == FILE.format(name=line)
    assert former_names(folder / "data") == []


def test_a_broker_that_runs_is_not_renamed(folder, capsys):
    file = configured(folder, 'name = "roof"')
    with claimed(str(folder / "data")):
        assert main(["broker", "rename", "hall", "--config", str(file)]) == 2
    assert "in use by another broker" in capsys.readouterr().err
    assert file.read_text() == FILE.format(name='name = "roof"')


def test_what_has_to_be_changed_elsewhere_is_said(folder, capsys):
    file = configured(folder, 'name = "roof"')
    assert (
        main(["broker", "rename", "hall", "--config", str(file), "--set", "links.host=127.0.0.1"])
        == 0
    )
    assert "brokers that have roof under [links.peers]" in capsys.readouterr().out
    assert Path(folder / "data" / "broker.former").read_text() == "roof\n"
