"""docs/rights.md: its table is that of the code, and what it types does what it says."""

import io
import re
import subprocess
import sys
import tomllib

import pytest

from broker.rights.judge import Principal, RightsJudge
from broker.rights.reader import read_rights
from broker.rights.requests import REQUESTS
from broker.rights.roles import BUILT_IN
from headwater.cli.frame import main
from tests.broker.running import CONFIG, ROOT, RunningBroker

PAGE = (ROOT / "docs" / "rights.md").read_text(encoding="utf-8")


def test_the_table_of_the_page_is_that_of_the_code():
    users = "\n".join(f"[users.{role}]\nroles = ['{role}']" for role in BUILT_IN)
    judge = RightsJudge(read_rights(tomllib.loads(users)), "headwater")
    rows = []
    for entry in REQUESTS:
        topic = f"`{entry.topic}`" if entry.topic else ""
        paths = ", ".join(f"`{route}`" for route in entry.routes)
        granted = [judge.allows(Principal(role), entry.need) for role in BUILT_IN]
        marks = ["yes" if may else "" for may in granted]
        rows.append("| " + " | ".join([entry.name, topic, paths, *marks]) + " |")
    begin = PAGE.index("| request |")
    assert PAGE[begin : PAGE.index("\n\n", begin)].splitlines()[2:] == rows


def test_the_file_of_the_page_is_read():
    _, block, _ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    table = read_rights(tomllib.loads(block))
    assert set(table.roles) == {"sensor", "nurse", "hall", "gateway", "spark"}
    judge = RightsJudge(table, "headwater")
    assert judge.may_publish(Principal("t7"), "headwater/events/Temp/t7")


@pytest.mark.program("curl")
@pytest.mark.parametrize("number", [0, 1])
def test_curl_as_each_role_is_answered_as_the_page_says(
    number, tmp_path, monkeypatch, capsys, find_program
):
    """The examples of quotas, and those of who asks as whom."""
    find_program("curl")
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^    headwater ((?:user|token) .*)$", PAGE, re.MULTILINE):
        monkeypatch.setattr(sys, "stdin", io.StringIO("sesame\n"))
        assert main(line.split()) == 0
    token = re.search(r"^hw_\S+$", capsys.readouterr().out, re.MULTILINE)[0]
    quotas = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[2]
    with (tmp_path / "rights.toml").open("a") as file:
        file.write(f"\n{quotas}")
    config = CONFIG.replace("[broker]", '[broker]\nrights = "rights.toml"')
    console = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[number]
    with RunningBroker(tmp_path, config, "--set", f"broker.data_dir={tmp_path}/data") as broker:
        printed = ""
        for line in re.findall(r"^\$ (.*)$", console, re.MULTILINE):
            here = line.replace("127.0.0.1:8080", f"127.0.0.1:{broker.port('http')}")
            done = subprocess.run(
                ["sh", "-c", here],
                capture_output=True,
                text=True,
                check=True,
                env={"TOKEN": token, "PATH": "/usr/bin:/bin"},
            )
            printed += f"$ {line}\n{done.stdout.rstrip()}\n"
    assert printed == console
