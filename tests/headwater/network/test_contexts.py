"""Named networks: kept, chosen, refused."""

import json
import stat

import pytest

from headwater.cli import main
from headwater.cli.network import contexts


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """A file of contexts of the test's own, and no broker in the environment."""
    path = tmp_path / "below" / "contexts.toml"
    monkeypatch.setenv("HEADWATER_CONTEXTS", str(path))
    for name in ("HEADWATER_BROKER", "HEADWATER_TOKEN", "HEADWATER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    return path


def test_the_first_context_is_selected_and_others_when_asked_for(file, capsys):
    assert main(["context", "add", "home", "http://a:1", "http://b:2", "--user", "anna"]) == 0
    assert main(["context", "add", "lab", "https://c:3"]) == 0
    assert main(["context", "select", "lab"]) == 0
    capsys.readouterr()
    assert main(["context", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "context": "home",
            "brokers": ["http://a:1", "http://b:2"],
            "user": "anna",
            "selected": False,
        },
        {"context": "lab", "brokers": ["https://c:3"], "user": None, "selected": True},
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert main(["context", "remove", "lab"]) == 0
    assert contexts.load() == contexts.Contexts(
        "", {"home": contexts.NamedNetwork("home", ("http://a:1", "http://b:2"), "anna")}
    )


def test_a_name_or_a_path_may_hold_any_sign(file, tmp_path):
    """What is written is read again as it was."""
    token_file = tmp_path / 'a "b"\\c\tä'
    token_file.write_text("hw_secret\n")
    context = contexts.NamedNetwork("v1.2_x-y", ("http://a:1",), 'an"na\\', str(token_file))
    contexts.save(contexts.Contexts("v1.2_x-y", {"v1.2_x-y": context}))
    (loaded,) = contexts.load().by_name.values()
    assert (loaded, loaded.token()) == (context, "hw_secret")
    assert "hw_secret" not in file.read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("selected = ", "invalid value"),
        ("brokers = []", "expected `selected` and tables"),
        ("[contexts.x]", "`brokers` is a list of addresses, at least one"),
        ("[contexts.x]\nbrokers = [1]", "`brokers` is a list of addresses"),
        ('[contexts.x]\nbrokers = ["http://a"]\npassword = "x"', "expected the keys brokers, user"),
        ('[contexts.x]\nbrokers = ["http://a"]\nuser = 3', "`user` and `token_file` are texts"),
        ('[contexts."a b"]\nbrokers = ["http://a"]', "a name has 1 to 64"),
    ],
)
def test_a_file_that_is_faulty_is_refused_with_its_place(text, says, file, capsys):
    file.parent.mkdir()
    file.write_text(text)
    assert main(["context", "ls"]) == 2
    told = capsys.readouterr().err
    assert str(file).lower() in told.lower()
    assert says in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["context", "add", "a b", "http://x"], "expected 1 to 64 letters"),
        (["context", "add", "x", "ftp://x"], "expected http://, https://, mqtt://, mqtts://"),
        (["context", "add", "x", "http://anna:pw@x"], "no password belongs into an address"),
        (["context", "select", "hone"], "no context `hone`; did you mean `home`?"),
        (["context", "remove", "zzz"], "`headwater context ls` lists them"),
        (["ls", "--context", "zzz"], "no context `zzz`"),
        (["flows", "--context", "\udcff"], "no text in UTF-8"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(words, says, file, capsys):
    assert main(["context", "add", "home", "http://a:1"]) == 0
    before = file.read_text()
    assert main(words) == 2
    assert says in capsys.readouterr().err
    assert file.read_text() == before


def reached(words, capsys):
    """The address that a command tries to reach, where nobody is."""
    assert main([*words, "--timeout", "0.2"]) == 3
    return capsys.readouterr().err.split()[3].rstrip(":")


def test_a_broker_named_by_hand_comes_before_contexts_and_the_environment(monkeypatch, capsys):
    for number in (1, 2):
        assert main(["context", "add", f"c{number}", f"http://127.0.0.1:{number}"]) == 0
    capsys.readouterr()
    assert reached(["ls"], capsys) == "http://127.0.0.1:1"
    assert reached(["ls", "--context", "c2"], capsys) == "http://127.0.0.1:2"
    monkeypatch.setenv("HEADWATER_BROKER", "http://127.0.0.1:3")
    assert reached(["ls"], capsys) == "http://127.0.0.1:3"
    assert reached(["ls", "--context", "c2"], capsys) == "http://127.0.0.1:2"
    words = ["ls", "--context", "c2", "--broker", "http://127.0.0.1:4"]
    assert reached(words, capsys) == "http://127.0.0.1:4"
