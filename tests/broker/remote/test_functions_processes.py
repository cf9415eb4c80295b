"""A running broker to which files of functions are given: what it refuses, and the commands."""

import json

import pytest

from broker.credentials import hash_password
from broker.network.functions.files import FILE_BYTES_MAX, FILES_MAX
from headwater.cli import main
from tests.broker.running import CONFIG, RunningBroker

OWN = b"from headwater import Function\nHalf = Function(lambda x: x / 2)\n"
OTHER = b"from headwater import Function\nHalf = Function(lambda x: x / 4)\n"
CONFIGURED = "from headwater import Function\nFixed = Function(abs)\n"
TEXT = b"""event Temp(val: float)
subscription A from anna to log
detect Temp as t
assign half = Half(t.val)
"""
RUNS = CONFIG.replace("[broker]", "[broker]\nrun_given_functions = true")


@pytest.fixture
def broker(tmp_path):
    (tmp_path / "fixed.py").write_text(CONFIGURED)
    config = RUNS.replace("[broker]", f'[broker]\nfunctions = "{tmp_path}/fixed.py"')
    with RunningBroker(tmp_path, config, f"--set=broker.data_dir={tmp_path}/data") as one:
        yield one


def files(broker):
    return [row["file"] for row in broker.get("/v1/functions")[1]["functions"]]


def sentence(reply):
    assert reply["ok"] is False
    (error,) = reply["errors"]
    return error["message"]


@pytest.mark.parametrize(
    ("name", "data", "status", "said"),
    [
        ("own", b"x = = 1\n", 422, "own.py:1: invalid syntax"),
        ("own", b"x = 1\n", 422, "own.py: no functions"),
        ("own", b"raise SystemExit(1)\n", 422, "own.py:1: SystemExit: 1"),
        ("own", b"1 / 0\n", 422, "own.py:1: ZeroDivisionError"),
        ("own", b"\xff\n", 422, "own.py"),
        ("own", OWN.replace(b"Half", b"sqrt"), 422, "`sqrt` is a function of the language"),
        ("own", OWN.replace(b"Half", b"Fixed"), 409, "broker.functions"),
        ("1own", OWN, 422, "`1own` is no name of a file"),
        ("own", OWN + b"#" * FILE_BYTES_MAX, 413, f"longer than {FILE_BYTES_MAX} bytes"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(broker, name, data, status, said):
    found, reply = broker.get(f"/v1/functions/{name}", "POST", data)
    assert (found, said in sentence(reply)) == (status, True), reply
    assert files(broker) == []
    assert broker.get("/v1/functions/ok", "POST", OWN)[0] == 200


def test_a_name_belongs_to_one_file_and_is_free_again_after_it(broker):
    assert broker.get("/v1/functions/own", "POST", OWN)[0] == 200
    status, reply = broker.get("/v1/functions/more", "POST", OTHER)
    assert (status, "`Half` is in the file `own` already" in sentence(reply)) == (409, True)
    assert broker.get("/v1/functions/own", "DELETE")[0] == 200
    status, reply = broker.get("/v1/functions/own", "DELETE")
    assert (status, "no file of functions `own`" in sentence(reply)) == (404, True)
    assert broker.get("/v1/functions/more", "POST", OTHER)[0] == 200
    assert files(broker) == ["more"]


def test_the_same_file_is_confirmed_once_more_and_another_replaces_it(broker):
    replies = [broker.get("/v1/functions/own", "POST", data) for data in (OWN, OWN, OTHER)]
    assert [(status, reply["changed"]) for status, reply in replies] == [
        (200, True), (200, False), (200, True),
    ]  # fmt: skip
    assert replies[0][1]["digest"] == replies[1][1]["digest"] != replies[2][1]["digest"]


def test_what_a_subscription_calls_is_neither_replaced_nor_removed(broker):
    broker.get("/v1/functions/own", "POST", OWN)
    assert broker.get("/v1/subscriptions?client=anna", "POST", TEXT)[0] == 200
    for asked in (("POST", OTHER), ("DELETE",)):
        status, reply = broker.get("/v1/functions/own", *asked)
        assert (status, "`anna/A at site-1`" in sentence(reply)) == (409, True)
    assert broker.get("/v1/functions/own", "POST", OWN)[0] == 200, "nothing would change"
    assert broker.get("/v1/subscriptions/A?client=anna", "DELETE")[0] == 200
    assert broker.get("/v1/functions/own", "POST", OTHER)[0] == 200


def test_no_more_files_are_in_force_than_a_broker_takes(broker):
    for number in range(FILES_MAX):
        data = OWN.replace(b"Half", b"F%d" % number)
        assert broker.get(f"/v1/functions/f{number}", "POST", data)[0] == 200
    status, reply = broker.get("/v1/functions/own", "POST", OWN)
    assert (status, f"{FILES_MAX} files" in sentence(reply)) == (409, True)
    assert broker.get("/v1/functions/f0", "POST", OWN)[0] == 200, "one takes the place of another"


def test_the_commands_give_list_and_remove(broker, tmp_path, capsys):
    url = f"http://127.0.0.1:{broker.port('http')}"
    path = tmp_path / "own.py"
    path.write_bytes(OWN)
    assert main(["functions", "add", str(path), "--broker", url]) == 0
    assert "travels from here: Half" in capsys.readouterr().out
    assert main(["functions", "add", str(path), "--broker", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False
    assert main(["functions", "ls", "--broker", url]) == 0
    printed = capsys.readouterr().out
    assert "functions: Half" in printed
    assert "every broker can use all of them" in printed
    assert main(["functions", "remove", "own", "--broker", url]) == 0
    assert main(["functions", "remove", "own", "--broker", url]) == 1
    path.write_bytes(b"x = = 1")
    assert main(["functions", "add", str(path), "--broker", url]) == 2
    assert "own.py:1: invalid syntax" in capsys.readouterr().err
    assert main(["functions", "add", str(tmp_path / "none.py"), "--broker", url]) == 2


def test_a_broker_without_the_setting_takes_none(tmp_path):
    with RunningBroker(tmp_path, CONFIG, f"--set=broker.data_dir={tmp_path}/data") as one:
        status, reply = one.get("/v1/functions/own", "POST", OWN)
        assert (status, "run_given_functions" in sentence(reply)) == (409, True)
        assert one.get("/v1/status")[1]["functions"] == {"runs": False, "files": {}, "faults": {}}


def test_who_gave_a_file_is_the_user_who_logged_in(tmp_path, capsys, monkeypatch):
    lines = [
        f'[users.{name}]\nroles = ["{role}"]\npassword = "{hash_password("open sesame")}"'
        for name, role in (("root", "administrate"), ("carl", "operate"), ("lea", "look"))
    ]
    (tmp_path / "rights.toml").write_text("\n".join(lines))
    config = RUNS.replace("[broker]", '[broker]\nrights = "rights.toml"')
    monkeypatch.setenv("HEADWATER_PASSWORD", "open sesame")
    (tmp_path / "own.py").write_bytes(OWN)
    with RunningBroker(tmp_path, config, f"--set=broker.data_dir={tmp_path}/data") as one:
        asked = ["--broker", f"http://127.0.0.1:{one.port('http')}", "--user"]
        add = ["functions", "add", str(tmp_path / "own.py"), *asked]
        assert main([*add, "carl"]) == 2
        assert main([*add, "lea"]) == 2
        assert main([*add, "root"]) == 0
        assert main(["functions", "remove", "own", *asked, "carl"]) == 2
        capsys.readouterr()
        assert main(["functions", "ls", *asked, "lea"]) == 0
        assert "given at site-1 by root" in capsys.readouterr().out
