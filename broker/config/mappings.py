"""The settings of one mapping from foreign topics to an event type.

Owns their meaning, what a preset stands for and what has to hold within a mapping; there is such a
section for each, `[mappings.NAME]`. Must not know messages. Invariant: of a mapping without faults
every `{name}` is a level of its topic.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec.structs import replace

from broker.config.about import About
from broker.config.errors import did_you_mean
from broker.engine.ingest.registry import RESERVED
from language.lexicon import SOURCE_SYNONYM

MAPPINGS_MAX = 64  # each is compared with every new topic
LEVELS_MAX = 16  # of a topic
ATTRIBUTES_MAX = 64  # of an event; a device of a home has some ten
PATH_LEVELS_MAX = 8  # of a path into a payload
PLAIN = "value"  # what is neither object nor array stands under this key
SPARKPLUG = "spBv1.0"  # the first level of all topics of Sparkplug B
SPARKPLUG_LEVELS = (4, 5)  # of an edge node and of its devices

_NAME = re.compile(r"\{([^{}]*)\}")
_GOOD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TEXT = r"[^\x00-\x1f]{0,255}"
PATH_SAYS = f"up to {PATH_LEVELS_MAX} keys with `.` between, such as `tmp.value`"


def _text(meaning: str) -> About:
    return About(
        meaning, pattern=_TEXT, pattern_says="up to 255 characters without control characters"
    )


class MappingSection(msgspec.Struct, frozen=True, kw_only=True):
    """Messages on topics that are not Headwater's as events of a type, see docs/mappings.md.

    There may be several, each under a name of its own, and several may take the same message.
    """

    preset: Annotated[
        Literal["none", "zigbee2mqtt", "home-assistant", "homie", "sparkplug-b"],
        About("what fills in the keys that are left out"),
    ] = "none"
    topic: Annotated[
        str,
        _text(
            "topic filter; a level is a text, `{name}` or `+`, the last may be `#`, and the first "
            "is a text"
        ),
    ] = ""
    without: Annotated[
        str,
        _text("topic filters, with `,` between, of what is not taken though `topic` takes it in"),
    ] = ""
    type: Annotated[
        str, _text("event type: a name, or one with `{name}` of a level of the topic")
    ] = ""
    source: Annotated[str, _text("source of the events, written likewise; empty: `{source}`")] = ""
    location: Annotated[
        str, _text("their location, written likewise; empty: that of the source's advertisement")
    ] = ""
    payload: Annotated[
        Literal["any", "json", "number", "text", "bytes", "sparkplug-b"],
        About(
            "what payloads are; `any`: JSON where it begins with `{` or `[`, else a number, `true` "
            "or `false`, else a text. What is no object is the attribute `value`. `sparkplug-b`: "
            "metrics, which needs the extra `headwater[sparkplug]`"
        ),
    ] = "any"
    attributes: Annotated[
        dict[str, str],
        About(
            "attributes of the event: a table of attribute = path in the payload, or name of a "
            "metric of Sparkplug B; from the environment `val=temperature,battery=battery`. None: "
            "all keys whose values are neither objects nor arrays",
            entries="attribute",
        ),
    ] = msgspec.field(default_factory=dict)
    timestamp: Annotated[
        str,
        _text(
            "path of the time in the payload; where there is none, the event is stamped on arrival"
        ),
    ] = ""
    timestamp_unit: Annotated[
        Literal["ms", "s"], About("what a time that is a number counts; a text is ISO 8601")
    ] = "ms"
    ignore: Annotated[str, _text("texts that stand for no value, with `,` between")] = ""
    retained: Annotated[
        bool,
        About(
            "take what a joined server had retained before the broker subscribed, too, each time "
            "that it connects"
        ),
    ] = False
    rebirth: Annotated[
        bool,
        About(
            "command an edge node of Sparkplug B to publish its births anew where its data cannot "
            "be read without, at most once a minute"
        ),
    ] = False


PRESETS: Final[dict[str, dict[str, str]]] = {
    "none": {},
    "zigbee2mqtt": {
        "topic": "zigbee2mqtt/{source}",
        "without": "zigbee2mqtt/bridge/#",
        "timestamp": "last_seen",
    },
    "home-assistant": {
        "topic": "homeassistant/sensor/{source}/state",
        "ignore": "unavailable,unknown",
    },
    "homie": {
        "topic": "homie/{device}/{node}/{property}",
        "type": "{property}",
        "source": "{device}/{node}",
    },
    "sparkplug-b": {
        "topic": f"{SPARKPLUG}/{{group}}/{{message}}/{{edge}}/{{device}}",
        "source": "{group}/{edge}/{device}",
        "payload": "sparkplug-b",
    },
}
_DEFAULTS: Final = MappingSection()


def settled(section: MappingSection) -> MappingSection:
    """The section with what its preset says where it says nothing itself."""
    missing = {
        key: value
        for key, value in PRESETS[section.preset].items()
        if getattr(section, key) == getattr(_DEFAULTS, key)
    }
    whole = replace(section, **missing)
    return whole if whole.source else replace(whole, source="{source}")


def names_in(text: str) -> list[str]:
    """The names that stand in braces."""
    return _NAME.findall(text)


def filled(text: str, names: Mapping[str, str]) -> str:
    """The text with each name in braces replaced by what it stands for."""
    return _NAME.sub(lambda found: names[found[1]], text)


def level_name(level: str) -> str | None:
    """The name of a level of a topic, if it has one."""
    match = _NAME.fullmatch(level)
    return match[1] if match else None


def filter_of(topic: str) -> str:
    """The topic filter of MQTT that takes at least what the mapping's topic takes."""
    return "/".join("+" if level_name(level) else level for level in topic.split("/"))


def left_out(section: MappingSection) -> list[str]:
    """The topic filters of what a mapping does not take."""
    return [pattern for pattern in map(str.strip, section.without.split(",")) if pattern]


def heard_by(section: MappingSection) -> str:
    """The topic filter of what a settled mapping has to hear.

    Of Sparkplug B that is all of an edge node: its births tell what its devices' data mean, and its
    sequence numbers whether one was missed.
    """
    if section.payload != "sparkplug-b":
        return filter_of(section.topic)
    _, group, _, edge, *_ = filter_of(section.topic).split("/")
    return f"{SPARKPLUG}/{group}/+/{edge}/#"


def is_attribute(name: str) -> bool:
    """Tell whether an attribute can be called so."""
    return bool(_ATTRIBUTE.fullmatch(name)) and name not in RESERVED and name != SOURCE_SYNONYM


def faults(section: MappingSection) -> Iterator[tuple[str, str]]:
    """The key of a mapping that is to change, and why and how."""
    whole = settled(section)
    if not whole.topic:
        yield "topic", "without a topic nothing is mapped; set `topic`, or `preset`"
        return
    wrong = _wrong_topic(whole.topic)
    if wrong:
        yield "topic", wrong
        return
    topic_setting = "topic" if section.topic else "preset"
    if not whole.type:
        yield topic_setting, "nothing says of what type the events are; set `type`"
    placeholders = names_in(whole.topic)
    for key in ("type", "source", "location"):
        text = getattr(whole, key)
        where = key if getattr(section, key) else topic_setting
        for name in names_in(text):
            if name not in placeholders:
                near = did_you_mean(name, placeholders) or f"; set `{key}` or name a level so"
                yield where, f"no level of the topic `{whole.topic}` is called `{{{name}}}`{near}"
                break
        if re.search(r"[{}]", _NAME.sub("", text)):
            yield where, f'found "{text}", where a brace stands alone'
    if whole.timestamp:
        try:
            check_path(whole.timestamp)
        except ValueError as error:
            yield "timestamp", str(error)
    for pattern in left_out(whole):
        wrong = _wrong_filter(pattern)
        if wrong:
            yield "without", wrong
    yield from _sparkplug_faults(section, whole)


def _wrong_filter(text: str) -> str:
    levels = text.split("/")
    for index, level in enumerate(levels):
        last = index == len(levels) - 1
        if re.search(r"[{}+#]", level) and level != "+" and not (level == "#" and last):
            return f'found the level "{level}", expected a text, `+`, or `#` at the end'
    return ""


def _sparkplug_faults(section: MappingSection, whole: MappingSection) -> Iterator[tuple[str, str]]:
    if whole.payload != "sparkplug-b":
        if whole.rebirth:
            why = "only edge nodes of Sparkplug B are born"
            yield "rebirth", f'{why}; set `payload = "sparkplug-b"`, or leave it out'
        return
    levels = whole.topic.split("/")
    message = level_name(levels[2]) if len(levels) > 2 else None
    good = len(levels) in SPARKPLUG_LEVELS and levels[0] == SPARKPLUG and levels[-1] != "#"
    if not good or (message is None and levels[2] != "+"):
        why = (
            f'found "{whole.topic}", expected `{SPARKPLUG}/{{group}}/{{message}}/{{edge}}`, with '
            "`/{device}` for devices; the third level must not be a text, as data need births"
        )
        yield "topic" if section.topic else "payload", why
    elif message in names_in(whole.source):
        yield "source", f"`{{{message}}}` changes from message to message, and a source does not"
    if whole.timestamp:
        yield "timestamp", "metrics of Sparkplug B bring their times along; leave it out"


def _wrong_topic(topic: str) -> str:
    levels = topic.split("/")
    if len(levels) > LEVELS_MAX:
        return f"found {len(levels)} levels, at most {LEVELS_MAX} are compared"
    names = names_in(topic)
    if re.search(r"[{}+#$]", levels[0][:1]) or _NAME.search(levels[0]) or not levels[0]:
        return f'found "{topic}", expected that the first level is a text that has no `$` in front'
    for index, level in enumerate(levels):
        name = level_name(level)
        if level == "+" or (level == "#" and index == len(levels) - 1):
            continue
        if name is None and re.search(r"[{}+#]", level):
            return f'found the level "{level}", expected a text, `{{name}}`, `+`, or `#` at the end'
        if name is not None and not _GOOD_NAME.fullmatch(name):
            return f"the name `{name}` will not do, expected a letter, then letters, digits or `_`"
        if name is not None and names.count(name) > 1:
            return f"two levels are called `{{{name}}}`; give each its own name"
    return ""


def may_meet(topic: str, prefix: str) -> bool:
    """Tell whether some topic at or below a prefix may be one of the mapping's."""
    levels = filter_of(topic).split("/")
    for index, own in enumerate(prefix.split("/")):
        if index >= len(levels):
            return False
        if levels[index] == "#":
            return True
        if levels[index] not in {"+", own}:
            return False
    return True


def check_path(path: str) -> str:
    """The path, or ValueError."""
    keys = path.split(".")
    if not all(keys) or len(keys) > PATH_LEVELS_MAX or len(path) > 255 or not path.isprintable():
        raise ValueError(f'found "{path[:100]}", expected {PATH_SAYS}')
    return path


def check_attribute(name: str, path: str) -> str:
    """The path of an attribute, or ValueError where the name or the path will not do."""
    if not _ATTRIBUTE.fullmatch(name):
        raise ValueError(
            f"the attribute `{name[:100]}` will not do, expected a letter or `_`, then letters, "
            "digits or `_`"
        )
    if name in RESERVED or name == SOURCE_SYNONYM:
        raise ValueError(f"every event has `{name}` already; name the attribute otherwise")
    return check_path(path)


def attributes_of_text(text: str) -> dict[str, str]:
    """The table that `name=path,name=path` stands for; ValueError where it is none."""
    paths: dict[str, str] = {}
    for part in filter(None, (entry.strip() for entry in text.split(","))):
        name, equals, path = part.partition("=")
        if not equals or name.strip() in paths:
            raise ValueError(f'found "{part[:100]}", expected each attribute once as name=path')
        paths[name.strip()] = path.strip()
    return paths
