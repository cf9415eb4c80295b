"""One network put together of what its brokers say."""

import random

from headwater.cli.network.diagram import as_dot, as_svg, as_tree
from headwater.cli.network.picture import NetworkPicture, with_rates
from tests.headwater.network.views import neighbour, operator, view

LINKS = (("a", "b"),)


def counts(views):
    return {(flow.sender, flow.receiver): flow.events for flow in NetworkPicture(views).flows()}


def test_a_direction_of_a_link_is_counted_by_its_sender_and_else_by_its_receiver():
    """Events under way are counted at one end alone; a broker that was not asked has no count."""
    at_a = view("a", LINKS, neighbours={"b": neighbour(sent={"T": 5}, received={"U": 2})})
    at_b = view("b", LINKS, neighbours={"a": neighbour(sent={"U": 3}, received={"T": 4})})
    both = {
        (flow.sender, flow.receiver): flow.events for flow in NetworkPicture([at_a, at_b]).flows()
    }
    assert both == {("a", "b"): {"T": 5}, ("b", "a"): {"U": 3}}
    alone = {(flow.sender, flow.receiver): flow.events for flow in NetworkPicture([at_b]).flows()}
    assert alone == {("a", "b"): {"T": 4}, ("b", "a"): {"U": 3}}


def test_a_rate_is_what_came_between_two_looks_by_the_counters_own_clock():
    def look(now, count):
        return NetworkPicture(
            [view("a", LINKS, now=now, neighbours={"b": neighbour({"T": count})})]
        )

    (there, _) = with_rates(look(1_000, 10), look(3_000, 40))
    assert there.per_s == {"T": 15.0}
    (there, _) = with_rates(look(1_000, 10), look(3_000, 4))  # it began anew between the looks
    assert there.per_s == {"T": 2.0}
    (there, _) = with_rates(look(1_000, 10), look(1_000, 10))
    assert there.per_s == {}


def test_operators_are_told_with_those_whom_they_are_for_and_what_they_cover():
    wide, narrow = operator("1", "T(v > 1): each"), operator("2", "T(v > 2): each", ["1"])
    at_a = view("a", LINKS, neighbours={"b": neighbour({"T": 1}, wants=[wide])})
    own = [{**wide, "for": ["anna/Wide"]}, {**narrow, "for": ["bob/Narrow"]}]
    at_b = view("b", LINKS, neighbours={"a": neighbour(asked=[wide])}, own=own)
    picture = NetworkPicture([at_a, at_b])
    text = "\n".join(as_tree(picture, picture.flows(), operators=True))
    assert "T(v > 1): each  for anna/Wide at b" in text
    assert "covers T(v > 2): each  for bob/Narrow at b" in text
    alone = NetworkPicture([at_a])
    text = "\n".join(as_tree(alone, alone.flows(), operators=True))
    assert "T(v > 1): each  for tasks at brokers that were not asked" in text


def test_what_tasks_of_several_homes_want_is_covered_over_a_link():
    """Cells of one broker, and neighbours of it, ask it apart; it asks for them all together."""
    wide, narrow = operator("1", "T(v > 1): each"), operator("2", "T(v > 2): each")
    at_a = view("a", LINKS, neighbours={"b": neighbour({"T": 1}, wants=[wide])})
    own = [
        {**wide, "for": ["anna/Wide"], "home": "b"},
        {**narrow, "for": ["bob/Narrow"], "home": "c"},
    ]
    together = [wide, operator("2", "T(v > 2): each", ["1"])]
    at_b = view("b", LINKS, neighbours={"a": neighbour(asked=together)}, own=own)
    picture = NetworkPicture([at_a, at_b])
    lines = [line.strip() for line in as_tree(picture, picture.flows(), operators=True)]
    assert lines[-2:] == [
        "T(v > 1): each  for anna/Wide at b",
        "covers T(v > 2): each  for bob/Narrow of c at b",
    ]


def test_a_link_that_is_down_is_told_with_the_reason():
    down = neighbour(state="down", reason="connection refused")
    picture = NetworkPicture([view("a", LINKS, neighbours={"b": down, "c": down})])
    states = {link.ends: (link.is_up, link.reason) for link in picture.links}
    assert states == {
        ("a", "b"): (False, "connection refused"),
        ("a", "c"): (False, "connection refused"),
    }
    assert "link down: connection refused" in "\n".join(as_tree(picture, [], operators=False))


def random_network(rng):
    """A connected network of up to 12 brokers with some links besides the tree."""
    names = [f"b{number}" for number in range(rng.randrange(1, 13))]
    tree = [(rng.choice(names[:i]), name) for i, name in enumerate(names) if i]
    links = {tuple(sorted(ends)): True for ends in tree}
    for _ in range(rng.randrange(4)):
        if len(names) > 2:
            links.setdefault(tuple(sorted(rng.sample(names, 2))), False)
    rows = tuple((*ends, in_tree) for ends, in_tree in links.items())
    return names, NetworkPicture([view(names[0], rows, known=names)])


def test_every_broker_and_every_link_stands_once_in_each_picture():
    rng = random.Random(11)
    for _ in range(200):
        names, picture = random_network(rng)
        lines = list(as_tree(picture, [], operators=False))
        heads = [line for line in lines if "→" not in line and "not in the tree" not in line]
        assert sorted(line.replace("│", " ").split()[-1] for line in heads) == sorted(names)
        beside = [line for line in lines if line.startswith("not in the tree")]
        assert len(beside) == sum(not link.in_tree for link in picture.links)
        dot, svg = as_dot(picture, []), as_svg(picture, [])
        assert dot.count(" -- ") == svg.count("<path") == len(picture.links)
        assert svg.count("<rect") == len(names)


def test_names_of_strangers_break_no_picture():
    """A broker's name and a reason come from others; Graphviz and XML have signs of their own."""
    from xml.etree import ElementTree as ET

    name = 'x"];<b>&\\'
    links = (("a", name),)
    down = neighbour(state="down", reason="<&\x07")
    picture = NetworkPicture([view("a", links, neighbours={name: down})])
    root = ET.fromstring(as_svg(picture, picture.flows()))
    assert any(node.text == name for node in root.iter("{http://www.w3.org/2000/svg}text"))
    assert '"x\\"];<b>&\\\\"' in as_dot(picture, picture.flows())
