"""The tests find what is planted: each fault fails a run of fast tests, the product as it is none.

Owns the runs. A fault that survives is a finding about the tests, never a reason to drop the fault:
a property is missing. `python -m pytest -m long tests/planted -k NAME` runs one again. The test
that found a fault last is asked first (`found.py`), which makes minutes of hours.
"""

import marshal

import pytest

from tests.planted import found
from tests.planted.copies import Copy, nearest_first
from tests.planted.fault import ROOT
from tests.planted.tables import FAULTS

BY_NAME = {fault.name: fault for fault in FAULTS}
FOUND = {name: (test,) for name, test in found.read().items()}
FILES = sorted({file for fault in FAULTS for file in nearest_first(fault.tests, fault.module)})
TOGETHER = 12  # files of one run: fewer would wait for their imports, more for no free core


def text_of(fault):
    path = ROOT / fault.module
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def test_there_are_many_faults_and_each_has_a_name_and_a_reason():
    assert len(FAULTS) >= 40
    assert len(BY_NAME) == len(FAULTS)
    assert all(fault.breaks and fault.old != fault.new for fault in FAULTS)


def test_every_fault_has_its_one_place():
    """Whoever rewrites a place finds where the same mistake can be made now."""
    lost = [fault.name for fault in FAULTS if text_of(fault).count(fault.old) != 1]
    assert not lost, f"these faults need another place: {lost}"


def test_a_planted_fault_leaves_python():
    """And another program: what is compiled is another."""
    as_it_is = {fault.module: compiled(text_of(fault)) for fault in FAULTS}
    for fault in FAULTS:
        before = text_of(fault)
        assert compiled(fault.planted(before)) != as_it_is[fault.module], fault.name


def compiled(text):
    return marshal.dumps(compile(text, "module", "exec", dont_inherit=True))


@pytest.fixture(scope="session")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("planted") / "copy")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", range(0, len(FILES), TOGETHER), ids=FILES.__getitem__)
def test_the_copy_without_a_fault_passes(copy, place):
    """And the tests in it are those of the copy."""
    assert copy.home_of("broker.engine.pattern.operators.join").is_relative_to(copy.folder)
    ran = copy.run(tuple(FILES[place : place + TOGETHER]))
    assert ran.status == 0, ran.output[-4000:]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_planted_fault_is_found(copy, name, record_property):
    fault = BY_NAME[name]
    ran = copy.run(fault.tests, fault, FOUND.get(name, ()))
    record_property("planted", [fault.module, name, ran.failed])
    assert ran.status == 1, (
        f"{fault.module} with `{fault.new}` for `{fault.old}` ({fault.breaks}) passes"
        f" {' '.join(fault.tests)}\n{ran.output[-2000:]}"
    )
    assert ran.failed is not None, ran.output[-2000:]
