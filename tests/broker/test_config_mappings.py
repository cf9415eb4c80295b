"""The sections of mappings: each understood whole or refused with its place."""

import pytest

from broker.config import ConfigError, load
from broker.config.mappings import (
    ATTRIBUTES_MAX,
    LEVELS_MAX,
    MAPPINGS_MAX,
    PRESETS,
    MappingSection,
    heard_by,
    may_meet,
    settled,
)
from broker.config.show import as_toml, page, shown

HOMIE = '[mappings.homie]\npreset = "homie"\n'
ZIGBEE = '[mappings.climate]\npreset = "zigbee2mqtt"\ntype = "Climate"\n'

UNKNOWN_LEVEL = "no level of the topic `a/{source}` is called `{sourse}`; did you mean `source`?"
MANY = ", ".join(f"a{n} = 'x'" for n in range(ATTRIBUTES_MAX + 1))


def loaded(tmp_path, text, **sources):
    path = tmp_path / "site.toml"
    path.write_text(text)
    return load(path, **sources)


def problems(tmp_path, text, **sources):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, **sources)
    return [one.replace(f"{tmp_path}/", "") for one in caught.value.problems]


SPARKPLUG = '[mappings.a]\npreset = "sparkplug-b"\n'


def own(more):
    return f'[mappings.a]\ntopic = "a/{{source}}"\ntype = "A"\n{more}'


def test_without_such_a_section_nothing_is_mapped():
    assert load().config.mappings == {}


def test_mappings_come_in_the_order_of_the_file(tmp_path):
    config = loaded(tmp_path, HOMIE + ZIGBEE).config
    assert config.mappings == {
        "homie": MappingSection(preset="homie"),
        "climate": MappingSection(preset="zigbee2mqtt", type="Climate"),
    }
    assert list(config.mappings) == ["homie", "climate"]


def test_a_preset_fills_in_what_is_left_out_and_nothing_else():
    for preset, says in PRESETS.items():
        said = settled(MappingSection(preset=preset, type="T", topic="x/{source}"))
        for key, value in says.items():
            assert getattr(said, key) == {"type": "T", "topic": "x/{source}"}.get(key, value)
        assert settled(said) == said
    assert settled(MappingSection(topic="x/{source}")).source == "{source}"


def test_environment_and_flags_override_and_may_bring_a_mapping_of_their_own(tmp_path):
    environ = {
        "HEADWATER__MAPPINGS__CLIMATE__ATTRIBUTES": "val=temperature, battery = b.level",
        "HEADWATER__MAPPINGS__YARD__PRESET": "homie",
    }
    flags = {"mappings.climate.location": "hall"}
    found = loaded(tmp_path, ZIGBEE, environ=environ, flags=flags).config.mappings
    assert found["climate"].attributes == {"val": "temperature", "battery": "b.level"}
    assert found["climate"].location == "hall"
    assert found["yard"].preset == "homie"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[mappings]\ntopic = 1", "site.toml:2:1: each mapping has a section of its own"),
        ("[mappings.A]\n", "site.toml:1:1: the name `A` will not do"),
        ("[mapings.a]\n", "site.toml:1:1: no such section `mapings`; did you mean `mappings`?"),
        (own("tipic = 1"), "site.toml:4:1: [mappings.a] has no key `tipic`; did you mean `topic`?"),
        (own('preset = "homy"'), 'found "homy", expected one of "none", "zigbee2mqtt"'),
        (own("retained = 1"), "site.toml:4:1: mappings.a.retained: found a whole number"),
        (own("attributes = 1"), "mappings.a.attributes: found a whole number (1), expected a tab"),
        ('[mappings.a]\ntype = "A"', "mappings.a.topic: without a topic nothing is mapped"),
        ('[mappings.a]\ntopic = "a/{source}"', "site.toml:2:1: mappings.a.topic: nothing says of"),
        (
            '[mappings.a]\npreset = "zigbee2mqtt"',
            "site.toml:2:1: mappings.a.preset: nothing says of what type",
        ),
        (
            own('location = "at-{sourse}"'),
            "site.toml:4:1: mappings.a.location: " + UNKNOWN_LEVEL,
        ),
        (own('location = "{source"'), "where a brace stands alone"),
        (own('timestamp = "a..b"'), 'mappings.a.timestamp: found "a..b", expected up to 8 keys'),
        (
            own('[mappings.a.attributes]\nval = "x"\nsource = "y"'),
            "site.toml:6:1: every event has `source` already",
        ),
        (
            own('without = "a/b, a/#/c"'),
            'site.toml:4:1: mappings.a.without: found the level "#", expected a text, `+`, or `#`',
        ),
        (own('without = "a/{b}"'), 'mappings.a.without: found the level "{b}"'),
        (
            own("rebirth = true"),
            "site.toml:4:1: mappings.a.rebirth: only edge nodes of Sparkplug B",
        ),
        (
            own('payload = "sparkplug-b"'),
            'mappings.a.topic: found "a/{source}", expected `spBv1.0/{group}/{message}/{edge}`',
        ),
        (SPARKPLUG + 'type = "{levl}"', "mappings.a.type: no level of the topic `spBv1.0/{group}/"),
        (
            SPARKPLUG + 'type = "A"\ntopic = "spBv1.0/{group}/{message}/{edge}"',
            "{message}/{edge}` is called `{device}`; set `source` or name a level so",
        ),
        (
            SPARKPLUG + 'type = "A"\nsource = "{message}/{device}"',
            "site.toml:4:1: mappings.a.source: `{message}` changes from message to message",
        ),
        (
            SPARKPLUG + 'type = "A"\ntimestamp = "t"',
            "site.toml:4:1: mappings.a.timestamp: metrics of Sparkplug B bring their times along",
        ),
        (own('attributes = { "a b" = "x" }'), "the attribute `a b` will not do"),
        (own("attributes = { a = 1 }"), "found a whole number (1), expected up to 8 keys"),
        (
            own(f"attributes = {{ {MANY} }}"),
            f"found {ATTRIBUTES_MAX + 1} attributes, at most {ATTRIBUTES_MAX}",
        ),
        (
            "".join(
                f'[mappings.m{n}]\ntopic = "a"\ntype = "A"\nsource = "s"\n'
                for n in range(MAPPINGS_MAX + 1)
            ),
            f"more than {MAPPINGS_MAX} mappings are not taken",
        ),
    ],
)
def test_what_will_not_do_is_refused_with_its_place(tmp_path, text, says):
    (problem,) = problems(tmp_path, text)
    assert says in problem


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        ("{source}/state", "expected that the first level is a text"),
        ("#", "expected that the first level is a text"),
        ("/{source}", "expected that the first level is a text"),
        ("$SYS/{source}", "expected that the first level is a text"),
        ("a/#/{source}", 'found the level "#"'),
        ("a/x{source}", 'found the level "x{source}"'),
        ("a/{}/{source}", "the name `` will not do"),
        ("a/{source}/{source}", "two levels are called `{source}`"),
        ("a/" * LEVELS_MAX + "{source}", f"found {LEVELS_MAX + 1} levels, at most {LEVELS_MAX}"),
        ("headwater/events/{source}", "would take topics below `headwater` (mqtt.prefix)"),
    ],
)
def test_a_topic_that_will_not_do_is_refused(tmp_path, topic, says):
    (problem,) = problems(tmp_path, f'[mappings.a]\ntopic = "{topic}"\ntype = "A"')
    assert problem.startswith("site.toml:2:1: mappings.a.topic: ")
    assert says in problem


@pytest.mark.parametrize(
    ("topic", "good"),
    [
        ("spBv1.0/plant/{message}/{edge}/{device}", True),
        ("spBv1.0/+/+/{edge}/{device}", True),
        ("spBv1.0/plant/DDATA/{edge}/{device}", False),
        ("spBv1.0/plant/{message}/{edge}/#", False),
        ("spBv1.0/plant/{message}", False),
        ("spBv1.0/plant/{message}/{edge}/{device}/x", False),
        ("site/plant/{message}/{edge}/{device}", False),
    ],
)
def test_topics_of_sparkplug_have_the_levels_that_it_gives_them(tmp_path, topic, good):
    text = SPARKPLUG + f'type = "A"\nsource = "s"\ntopic = "{topic}"'
    if good:
        assert settled(loaded(tmp_path, text).config.mappings["a"]).payload == "sparkplug-b"
    else:
        (problem,) = problems(tmp_path, text)
        assert problem.startswith("site.toml:5:1: mappings.a.topic: found")


def test_what_is_heard_of_sparkplug_is_all_of_an_edge_node():
    one = MappingSection(preset="sparkplug-b", type="A", topic="spBv1.0/plant/+/{edge}/press")
    assert heard_by(settled(one)) == "spBv1.0/plant/+/+/#"
    assert heard_by(settled(MappingSection(preset="homie"))) == "homie/+/+/+"


def test_no_mapping_takes_what_is_headwaters_own_at_a_joined_server(tmp_path):
    text = '[mqtt]\nport = 1999\n[joins.hall]\nprefix = "site/hw"\n[mappings.a]\ntype = "A"\n'
    assert loaded(tmp_path, text + 'topic = "site/lamps/{source}"').config.mappings
    (problem,) = problems(tmp_path, text + 'topic = "site/{source}/#"')
    assert "would take topics below `site/hw` (joins.hall.prefix)" in problem


@pytest.mark.parametrize(
    ("topic", "prefix", "met"),
    [
        ("a/{b}", "a", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/{b}", "a/b", True),
        ("a/{b}/c", "a/b", True),
        ("a/{b}/c", "a/b/d", False),
        ("a/b", "a/b/c", False),
        ("a/b", "c", False),
    ],
)
def test_whether_a_mapping_takes_something_at_or_below_a_prefix(topic, prefix, met):
    assert may_meet(topic, prefix) == met


def test_what_is_shown_can_be_read_again(tmp_path):
    text = ZIGBEE + '[mappings.climate.attributes]\nval = "temperature"\n' + HOMIE
    first = loaded(tmp_path, text)
    told = as_toml(shown(first), origins=True)
    assert "site.toml:3" in told
    assert loaded(tmp_path, told).config.mappings == first.config.mappings


def test_the_page_has_every_key():
    (_, _, section) = page().partition("## [mappings.NAME]")
    for name in MappingSection.__struct_fields__:
        assert f"| `{name}` |" in section
