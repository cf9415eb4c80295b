"""Which subscriptions of one text are a cell of their own."""

import msgspec
import pytest

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.networked.cell_parts import PARTED_MAX, PARTS_MAX
from broker.core.networked.networked import NetworkedBroker
from broker.core.recovery import durable_told
from broker.engine.limits import Limits

TYPES = "ABCD"
DECLARED = "".join(f"event {name}(val: float)\n" for name in TYPES)


def home(cells_max=1_000):
    options = BrokerOptions(name="a", networked=True, cells=True)
    return NetworkedBroker(options, Limits(cells_max=cells_max))


def submit(broker, text, cells=PARTS_MAX, client="x"):
    request = messages.SpecificationSubmitted(client, "r", DECLARED + text, cells=cells)
    (reply,) = [one for one in broker.handle(request, 1_000) if hasattr(one, "payload")]
    assert msgspec.json.decode(reply.payload)["ok"]


def cells_of(broker):
    return [[name for _, name in cell.keys] for cell in broker.book.cells.values()]


def subscription(name, detect, client="x"):
    return f"subscription {name} from {client} to y detect {detect}\n"


def cells(*subscriptions, before=""):
    broker = home()
    submit(broker, before + "".join(subscription(*one) for one in subscriptions))
    return cells_of(broker)


def test_what_needs_other_types_runs_apart():
    found = cells(("One", "A(val > 3)"), ("Two", "B then A within 3 s"), ("Three", "C"))
    assert found == [["One"], ["Two"], ["Three"]]


def test_what_needs_the_same_types_runs_apart_too():
    found = cells(("Hot", "A(val > 3)"), ("Other", "B"), ("Cold", "A(val < 1)"))
    assert found == [["Hot"], ["Other"], ["Cold"]]


@pytest.mark.parametrize("condition", ['location in path("hall/{}")', 'source = "{}"'])
def test_where_too_many_would_be_apart_those_of_the_same_places_are_together(condition):
    wanted = [f"A({condition.format(one)} and val > {place})" for place, one in enumerate("ppq")]
    many = [(f"S{number}", "BCD"[number % 3]) for number in range(PARTS_MAX - 2)]
    found = cells(("First", wanted[0]), ("Second", wanted[1]), ("Third", wanted[2]), *many)
    assert found[:2] == [["First", "Second"], ["Third"]]
    assert len(found) == 2 + len("BCD")


def test_what_shares_a_definition_runs_together():
    shared = "define Warm(val) detect A(val > 5) assign val = A.val\n"
    found = cells(("One", "Warm"), ("Two", "B"), ("Three", "C and Warm within 1 s"), before=shared)
    assert found == [["One", "Three"], ["Two"]]


def test_what_another_text_brought_runs_apart_with_a_definition_of_its_own():
    broker = home()
    for name in ("One", "Two"):
        submit(
            broker, "define Warm(val) detect A assign val = A.val\n" + subscription(name, "Warm")
        )
    assert cells_of(broker) == [["One"], ["Two"]]


def test_what_links_two_others_brings_them_together():
    shared = "define Warm(val) detect A(val > 5) assign val = A.val\n"
    found = cells(
        ("One", "B"),
        ("Two", "Warm"),
        ("Four", "D"),
        ("Three", "B(val > 1) and Warm within 1 s"),
        ("Five", "Mild(val > 2) and Warm within 1 s"),
        ("Six", "Mild"),
        before=shared + "define Mild(val) detect B(val > 1) assign val = B.val\n",
    )
    assert found == [["One"], ["Two", "Three", "Five", "Six"], ["Four"]]


def test_too_many_parts_are_one():
    at_most = [(f"S{number}", f'A(source = "{number}")') for number in range(PARTS_MAX)]
    assert len(cells(*at_most)) == PARTS_MAX
    assert len(cells(*at_most, ("Last", "B"))) == 1


def test_a_long_text_is_one():
    many = [(f"S{number}", f"A(val > {number})") for number in range(PARTED_MAX - 1)]
    assert len(many) > PARTS_MAX
    assert len(cells(*many, ("Last", "B"))) == 2
    assert len(cells(*many, ("More", "A"), ("Last", "B"))) == 1


def test_a_broker_with_many_cells_parts_no_more():
    broker = home(cells_max=6)
    text = subscription("One", "A") + subscription("Two", "B") + subscription("Three", "C")
    submit(broker, text)
    submit(broker, text.replace("from x", "from z"), client="z")
    assert [len(one) for one in cells_of(broker)] == [1, 1, 1, 3]


def test_what_is_replaced_leaves_its_cell_and_what_stays_keeps_it():
    broker = home()
    text = subscription("One", "A") + subscription("Two", "B")
    submit(broker, text)
    names = dict(broker.book.of)
    submit(broker, text.replace("Two from", "Two seq 2 from").replace("detect B", "detect C"))
    assert broker.book.of["x", "One"] == names["x", "One"]
    assert broker.book.of["x", "Two"] != names["x", "Two"]
    assert cells_of(broker) == [["One"], ["Two"]]


def test_what_an_older_version_wrote_down_is_not_parted():
    text = DECLARED + subscription("One", "A") + subscription("Two", "B")
    record = durable_told.written(messages.SpecificationSubmitted("x", "r", text, cells=5), 7)
    rows = msgspec.msgpack.decode(record)
    *older, cells, _, _, _, _ = rows
    assert cells == 5
    message, now = durable_told.read(msgspec.msgpack.encode(older))
    assert (message.cells, now) == (1, 7)
    broker = home()
    broker.handle(message, now)
    assert cells_of(broker) == [["One", "Two"]]
    broker = home()
    message, now = durable_told.read(record)
    broker.handle(message, now)
    assert cells_of(broker) == [["One"], ["Two"]]


def test_what_an_older_version_wrote_down_is_parted_as_it_did():
    """Else records behind it, of cells by their numbers, would be of others."""
    text = DECLARED + "".join(subscription(*one) for one in (("One", "A"), ("Two", "A(val > 1)")))
    record = durable_told.written(messages.SpecificationSubmitted("x", "r", text, cells=5), 7)
    *older, alone, _, _ = msgspec.msgpack.decode(record)
    assert alone is True
    for data, found in ((record, [["One"], ["Two"]]), (older, [["One", "Two"]])):
        broker = home()
        message, now = durable_told.read(data if data is record else msgspec.msgpack.encode(data))
        broker.handle(message, now)
        assert cells_of(broker) == found
