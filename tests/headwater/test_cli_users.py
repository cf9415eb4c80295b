"""The commands that keep a rights file: users and tokens."""

import io
import json
import os
import subprocess
import sys

import pytest

from broker.config.rights import load_rights
from broker.credentials import check_password, token_digest
from headwater.cli.frame import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes and terminals of Unix")


@pytest.fixture
def users(tmp_path):
    return tmp_path / "rights.toml"


@pytest.fixture
def typed(monkeypatch):
    """Sets what standard input holds; the terminal is not asked."""

    def given(text):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    return given


def passwords(users):
    return load_rights(str(users)).passwords


def test_a_user_is_added_changed_listed_and_removed(users, typed, capsys):
    for name, password in (("ann", "one"), ("ben.b", "two")):
        typed(f"{password}\n")
        words = ["user", "add", name, "--role", "look", "--role", "publish", "--password-stdin"]
        assert main([*words, "--file", str(users)]) == 0
    assert users.stat().st_mode & 0o777 == 0o600
    assert check_password("two", passwords(users)["ben.b"])
    before = passwords(users)["ann"]
    typed("three\n")
    assert main(["user", "passwd", "ben.b", "--file", str(users), "--password-stdin"]) == 0
    assert check_password("three", passwords(users)["ben.b"])
    assert passwords(users)["ann"] == before
    assert main(["user", "list", "--file", str(users)]) == 0
    assert main(["user", "list", "--file", str(users), "--json"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[:2] == ["ann  look, publish", "ben.b  look, publish"]
    assert [user["name"] for user in json.loads(listed[2])] == ["ann", "ben.b"]
    assert main(["user", "remove", "ann", "--file", str(users)]) == 0
    assert list(passwords(users)) == ["ben.b"]


def test_a_token_is_shown_once_and_kept_as_a_hash(users, capsys):
    add = ["token", "add", "spark", "--role", "look", "--until", "2099-12-31T00:00Z"]
    assert main([*add, "--file", str(users)]) == 0
    token = capsys.readouterr().out.strip()
    assert token not in users.read_text()
    table = load_rights(str(users))
    assert table.tokens["spark"].digest == token_digest(token)
    assert main(["token", "ls", "--file", str(users)]) == 0
    assert capsys.readouterr().out == "spark  look  until 2099-12-31T00:00Z\n"
    assert main([*add, "--file", str(users)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["token", "remove", "spark", "--file", str(users)]) == 0
    assert load_rights(str(users)).is_open


def test_what_else_stands_in_the_file_stays(users, typed):
    text = "# the pumps\n[users.'ann']  # old\nroles = ['look']\n\n# ben\n[users.\"ben\"]\n"
    users.write_text(text)
    typed("secret")
    assert main(["user", "passwd", "ann", "--file", str(users)]) == 0
    lines = users.read_text().splitlines()
    assert lines[:2] == ["# the pumps", "[users.'ann']  # old"]
    assert lines[2].startswith('password = "scrypt$')
    assert lines[3:] == ["roles = ['look']", "", "# ben", '[users."ben"]']
    assert users.stat().st_mode & 0o777 == 0o600  # whatever it was before
    assert main(["user", "remove", "ann", "--file", str(users)]) == 0
    assert users.read_text() == '# the pumps\n\n# ben\n[users."ben"]\n'


@pytest.mark.parametrize(
    ("words", "text", "says"),
    [
        (["add", "ann"], "[users.ann]", "is there already"),
        (["add", "ann", "--role", "lok"], "", "there is no role `lok`; did you mean `look`?"),
        (["passwd", "bob"], "[users.ann]", "there is no user `bob`"),
        (["remove", "bob"], "[users.ann]", "there is no user `bob`"),
        (["list"], None, "there is no such file"),
        (["remove", "ann"], "ann = 'x'", "there is no table `ann`"),
        (["remove", "ann"], "ann =", "not TOML"),
        (["remove", "ann"], "ann = 1" + "0" * 5_000, "not TOML"),
        (["add", "a b"], "", "the name `a b` will not do"),
        (["remove", "ann"], "[users]\nann = {}", "cannot be changed"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_file_stays(words, text, says, users, typed, capsys):
    if text is not None:
        users.write_text(text)
    typed("secret\n")
    assert main(["user", *words, "--file", str(users)]) == 2
    assert says in capsys.readouterr().err
    assert (users.read_text() if text is not None else None) == text
    assert not [path for path in users.parent.iterdir() if path != users]


def test_a_password_is_asked_for_twice_and_never_shown(users):
    """At a terminal of its own, which shows what is typed unless it is told not to."""
    words = ["user", "add", "ann", "--file", str(users)]
    program = (
        "import os, pty, sys\n"
        "child, terminal = pty.fork()\n"
        "if not child:\n"
        "    os.execv(sys.executable, [sys.executable, '-m', 'headwater.cli', *sys.argv[1:]])\n"
        "said = b''\n"
        "for prompt in (b'password: ', b'once more: '):\n"
        "    while not said.endswith(prompt):\n"
        "        said += os.read(terminal, 1024)\n"
        "    os.write(terminal, b'sesame\\n')\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(status, b'sesame' in said)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == ["0", "False"]
    assert check_password("sesame", passwords(users)["ann"])
