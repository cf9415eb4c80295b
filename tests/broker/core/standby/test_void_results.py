"""Results that a home has disowned are not in its stand-in's copy, and stop no take-over."""

from types import SimpleNamespace

from broker.core.effects import DisownResults, Emission, Outgoing, disowned
from broker.core.standby.adoption import Adoption
from broker.core.standby.home_changes import HomeChanges
from broker.core.standby.home_copy import GivenRow, HomeCopy
from broker.network.delivery.succession import HomeTaken, SuccessionLog
from broker.network.placement.book import CellBook

PAYLOAD = b'{"id":"r","end":5}'


def results(*names):
    return tuple(
        [
            Emission(f"r{offset}", 5, "anna", name, "log", PAYLOAD, offset)
            for offset, name in enumerate(names)
        ]
    )


def home():
    return SimpleNamespace(
        catalogue=SimpleNamespace(subscriptions={}),
        book=CellBook("hall"),
        copies=SimpleNamespace(brokers=list, life=0),
    )


def test_a_stand_in_gets_no_void_result_of_a_home_that_begins_again():
    unstored = disowned(results("Taken", "Kept", "Taken"), DisownResults((("anna", "Taken"),), 0))
    state = HomeChanges(home(), unstored).state()
    assert [row.offset for row in HomeCopy("hall", 1, 0, state).given.rows] == [1]
    changes = HomeChanges(home())
    copy = HomeCopy("hall", 1, 0, changes.state())
    copy.take(changes.given(unstored), 1)
    assert [row.offset for row in copy.given.rows] == [1]


def test_a_copy_with_a_void_result_is_taken_over():
    copy = HomeCopy("hall", 1, 0)
    copy.epoch = "log"
    row = "anna", "Gone", "log"
    copy.given.add([GivenRow(0, (*row, b"")), GivenRow(1, (*row, PAYLOAD))])
    core = SimpleNamespace(
        now=10,
        options=SimpleNamespace(name="roof", cells=True),
        standing_in=SimpleNamespace(homes={"hall": copy}, entrusted=None, changed=None),
        catalogue=SimpleNamespace(subscriptions={}),
        book=CellBook("roof"),
        successions=SuccessionLog(),
        activation=SimpleNamespace(look=list),
    )
    adoption = Adoption(core, {}, None, lambda: None, lambda *_: None, lambda *_: None)
    out = Outgoing()
    adoption.adopt(HomeTaken("hall"), out)
    assert [result.payload for result in out.results] == [PAYLOAD]
    assert adoption.inherited.before(9)[0]["runs"] == [[1, 0, 1]]
    assert core.successions.heirs() == {"hall": ["roof"]}
