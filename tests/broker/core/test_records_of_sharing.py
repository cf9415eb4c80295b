"""Records of an earlier version, where who came later shared what ran: they mean what they did."""

import msgspec
import pytest

from broker.core.messages import ResumeRequested, SpecificationSubmitted
from broker.core.recovery.durable_told import read, written
from broker.core.recovery.records import Record
from broker.engine.limits import make_limits
from broker.network.frames import told
from broker.network.frames.told import decoded, encoded
from tests.broker.core.machine import DECLARED, event, subscription
from tests.broker.core.network.test_networked import Core
from tests.broker.core.test_durable import Disk

RISE = (
    "define Rise(val) detect Temp(val < 10) as a then[..30 s] Temp(val > 30) as b"
    " assign val = b.val\n"
)
WILD = "define Wild(val) detect Temp as a and Temp as b and Temp as c assign val = a.val\n"


def needing(definition, name, seq=1):
    detect = "Wild" if definition is WILD else "Rise"
    return DECLARED + definition + subscription(name, detect, "anna").replace("seq 1", f"seq {seq}")


def of_before(data):
    """Return a record as a version without the last field of it wrote it."""
    *fields, apart = msgspec.msgpack.decode(data)
    assert apart is True
    return msgspec.msgpack.encode(fields)


def rewrite_last(disk):
    last = disk.records[-1]
    disk.records[-1] = Record(last.number, of_before(last.data))


@pytest.mark.parametrize("earlier", [False, True])
def test_who_came_to_a_definition_at_work_gets_after_a_crash_what_it_got_before(earlier):
    """Else results stand under offsets that others were given out under."""
    disk = Disk()
    disk.submit(needing(RISE, "First"))
    disk.send(event(1, 5, id="a"))
    disk.submit(needing(RISE, "Later"))
    if earlier:
        rewrite_last(disk)
    disk.start()
    disk.send(event(2, 31, id="b"))
    names = [one["subscription"] for one in disk.said()]
    assert names == (["First", "Later"] if earlier else ["First"])
    # Who comes to this version begins with nothing, and does so when that is handled again.
    disk.send(event(3, 5, id="c"))
    disk.submit(needing(RISE, "Last"))
    before = len(disk.said())
    disk.start()
    disk.send(event(4, 32, id="d"))
    names = dict.fromkeys(one["subscription"] for one in disk.said()[before:])
    assert list(names) == ["First", "Later"]
    disk.send(event(50_000, 5, id="e"))
    disk.send(event(50_001, 32, id="f"))
    assert sorted(one["subscription"] for one in disk.said()[-3:]) == ["First", "Last", "Later"]


@pytest.mark.parametrize("earlier", [False, True])
def test_a_changed_text_went_on_with_what_ran_for_others(earlier):
    disk = Disk()
    disk.submit(needing(RISE, "First"))
    disk.submit(DECLARED + subscription("Other", "Temp(val > 90) as hot", "anna"))
    disk.send(event(1, 5, id="a"))
    disk.submit(needing(RISE, "Other", seq=2))
    if earlier:
        rewrite_last(disk)
    disk.start()
    disk.send(event(2, 31, id="b"))
    names = [one["subscription"] for one in disk.said()]
    assert names == (["First", "Other"] if earlier else ["First"])


@pytest.mark.parametrize("earlier", [False, True])
def test_a_definition_was_resumed_for_all(earlier):
    disk = Disk()
    disk.limits = make_limits(step_candidates_max=2_000, step_bytes_max=1_000_000)
    disk.start()
    for name in ("First", "Later"):
        disk.submit(needing(WILD, name))
    for at in range(100):
        disk.send(event(at * 100))
    assert [bool(one.suspended) for one in disk.broker.subscriptions] == [True, True]
    before = len(disk.said())

    def resume(name):
        disk.tell(ResumeRequested("anna", name, name, "here", "token"))
        if earlier:
            rewrite_last(disk)
        disk.start()

    resume("First")
    for at in (20_000, 20_001):
        disk.send(event(at))
    resume("Later")
    disk.send(event(20_002))
    later = [one["subscription"] for one in disk.said()[before:]]
    assert later.count("First") == 6
    assert later.count("Later") == (6 if earlier else 0)
    disk.send(event(20_003))
    # Of the four events each triple that was not found before, in any order.
    assert [one["subscription"] for one in disk.said()[before:]].count("First") == 24


@pytest.mark.parametrize("earlier", [False, True])
def test_what_became_active_shared_what_was_active(earlier):
    core = Core("hall")
    text = (
        "event Temp(val: float)\n"
        "define D(val) detect Temp(val > 3) as a then Temp(val < 3) as b within 10 s"
        " assign val = b.val\nsubscription {} from x to y detect D\n"
    )

    core.tell(SpecificationSubmitted("c", "r", text.format("S")), 1_001)
    core.tell(told.Activated((("x", "S"),), apart=not earlier), 1_100)
    core.event("a", 1_500, 5.0, now=1_600)
    core.tell(SpecificationSubmitted("c", "r", text.format("T"), apart=not earlier), 1_700)
    core.open(1_700)
    core.tell(told.Activated((("x", "T"),), apart=not earlier), 1_700)
    core.event("b", 1_800, 1.0, now=1_900)
    found = [one["subscription"] for one in core.results]
    assert found == (["S", "T"] if earlier else ["S"])


def test_records_of_before_are_read_as_such():
    only = (("x", "S"),)
    kinds = (
        SpecificationSubmitted("c", "r", "t"),
        SpecificationSubmitted("c", "r", "t", split=True),
        SpecificationSubmitted("c", "r", "t", only=only),
        ResumeRequested("c", "r", "n"),
    )
    for message in kinds:
        now_read, _ = read(written(message, 1))
        before_read, _ = read(of_before(written(message, 1)))
        assert now_read.apart
        assert not before_read.apart
        if isinstance(message, SpecificationSubmitted):
            assert (before_read.only, before_read.split) == (message.only, message.split)
    activated = told.Activated(only, apart=True)
    assert decoded(encoded(activated)) == activated
    assert decoded(of_before(encoded(activated))) == told.Activated(only)
