"""Every code that a user can meet is explained, the running broker's too."""

import json
import re

import pytest

from broker.core.refusals import TABLE as REFUSED
from headwater.cli import main
from headwater.errors import REFUSALS, page, titles
from language.messages import TABLE


def test_every_refusal_of_a_broker_has_a_meaning():
    assert list(REFUSALS) == list(REFUSED)
    for meaning in REFUSALS.values():
        assert not meaning.title.endswith(".")
        assert meaning.when.endswith(".")


@pytest.mark.parametrize("code", [*TABLE, *REFUSED])
def test_the_command_explains_every_code(code, capsys):
    assert main(["explain", code.lower()]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{code}: {titles()[code]}\n")
    assert main(["explain", code, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["code"] == code
    assert found["help"]


def test_the_command_lists_all_codes_in_order(capsys):
    assert main(["explain"]) == 0
    listed = [line.split("  ", 1) for line in capsys.readouterr().out.splitlines()]
    assert [code for code, _ in listed] == sorted([*TABLE, *REFUSED])
    assert all(title for _, title in listed)
    assert main(["explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == dict(listed)


def test_an_unknown_code_is_a_sentence(capsys):
    assert main(["explain", "HW999"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "headwater: no error has the code HW999; the first is HW101\n"


def test_the_page_has_a_section_for_each_code():
    heads = re.findall(r"^### (HW\d{3}): ", page(), flags=re.MULTILINE)
    assert sorted(heads) == sorted([*TABLE, *REFUSED])
    assert len(heads) == len(set(heads))
