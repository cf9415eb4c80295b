"""The file of rights: who may publish and subscribe where.

Owns its form and the sentences for what is wrong in it. Must not know what rights mean:
`broker.mqtt.rights` does. Invariant: either every right was understood or none is used.
"""

from pathlib import Path
from typing import Any, cast

from broker.config.document import Document
from broker.config.errors import ConfigError, RefusedError, did_you_mean
from broker.mqtt.application import Action
from broker.mqtt.reasons import ProtocolError
from broker.mqtt.rights import Right, Rights, check_pattern
from broker.mqtt.topics import check_filter

RIGHTS_MAX = 10_000  # each is looked at for each new topic of each client
LEVELS_MAX = 64
_ACTIONS: dict[str, tuple[Action, ...]] = {
    "publish": ("publish",),
    "subscribe": ("subscribe",),
    "both": ("publish", "subscribe"),
}
_KEYS = ("allow", "deny", "topics", "users", "clients")


def load_rights(path: str) -> Rights | None:
    """The rights of a file, or None for no name: then everybody may everything.

    Raises ConfigError with all that is wrong.
    """
    if not path:
        return None
    document = Document(Path(path))
    problems = [
        f"{document.place(key)}: no such table `{key}`, expected [[rights]]"
        for key in document.tables
        if key != "rights"
    ]
    tables = document.tables.get("rights", [])
    if not isinstance(tables, list):
        problems.append(f"{document.place('rights')}: write [[rights]] above each right")
        tables = []
    if len(tables) > RIGHTS_MAX:
        problems.append(f"{path}: {len(tables)} rights, at most {RIGHTS_MAX} are read")
    rights: list[Right] = []
    for number, table in enumerate(tables, start=1):
        try:
            rights.append(_right(table))
        except RefusedError as refused:
            problems.append(f"{path}: right {number}: {refused}")
    if problems:
        raise ConfigError(*problems)
    return Rights(rights)


def _right(table: Any) -> Right:
    if not isinstance(table, dict):
        raise RefusedError("it is no table of keys")
    for key in table:
        if key not in _KEYS:
            raise RefusedError(f"there is no key `{key}`{did_you_mean(key, _KEYS)}")
    words = [key for key in ("allow", "deny") if key in table]
    if len(words) != 1:
        raise RefusedError("it needs one of `allow` and `deny`")
    (word,) = words
    actions = _ACTIONS.get(table[word]) if isinstance(table[word], str) else None
    if actions is None:
        raise RefusedError(f'`{word}` is one of "publish", "subscribe" and "both"')
    topics = _texts(table, "topics")
    if not topics:
        raise RefusedError("it needs `topics`, a topic filter or several")
    for topic in topics:
        try:
            check_filter(topic, LEVELS_MAX)
        except ProtocolError as error:
            raise RefusedError(f'the topic "{topic}": {error.text}') from None
        if why := check_pattern(topic):
            raise RefusedError(f'the topic "{topic}": {why}')
    return Right(word == "allow", actions, topics, _texts(table, "users"), _texts(table, "clients"))


def _texts(table: dict[str, object], key: str) -> tuple[str, ...]:
    """One text or several; none where the key is absent. An empty list would fit nobody."""
    value = table.get(key)
    if value is None:
        return ()
    several = [value] if isinstance(value, str) else value
    if (
        not isinstance(several, list)
        or not several
        or not all(isinstance(one, str) and one for one in several)
    ):
        raise RefusedError(f"`{key}` is a text or a list of texts")
    return tuple(cast("list[str]", several))
