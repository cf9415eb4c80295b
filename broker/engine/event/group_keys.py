"""Keys of groups as they are shown: one form for each, whichever event came first.

Owns the form, also in the name of an actor. Must not know how events are grouped. Invariant: of
equal keys, as 1 and 1.0 or 0.0 and -0.0, the same is shown.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from language.lexicon import COMMON_ATTRIBUTES
from language.walk import atoms

if TYPE_CHECKING:
    from language.specification import EventType
    from language.tree import Case

Group = tuple[Any, ...]
Form = Callable[[Any], Any]

WHOLE_MAX = 2**53  # up to there each whole number has a float of its own


def shown_form(case: Case, types: Mapping[str, EventType]) -> Callable[[Group], Group] | None:
    """Return the function that gives a group as it is shown; None if that is the group itself.

    A part is a float where any type that the pattern names declares it so.
    """
    if not case.group_by:
        return None
    # A dict and no set: the order of types decides nothing here, but iterating a set would make
    # that depend on PYTHONHASHSEED.
    named = dict.fromkeys(atom.type for atom in atoms(case.detect.pattern))
    forms = [_form_of_key(key, [types[name].attributes for name in named]) for key in case.group_by]
    if all(form is as_it_is for form in forms):
        return None

    def shown(group: Group) -> Group:
        return tuple([form(part) for form, part in zip(forms, group, strict=True)])

    return shown


def _form_of_key(key: str, declared: list[Mapping[str, str]]) -> Form:
    if key in COMMON_ATTRIBUTES:
        return as_it_is
    return form_of({attributes.get(key, "any") for attributes in declared})


def form_of(kinds: set[str]) -> Form:
    """The form of values of which the types are known."""
    # By the declared types and not by the values: otherwise the group of 1 and 1.0 would be shown
    # as whichever came first, which depends on arrival.
    if "float" in kinds:
        return as_float
    return as_whole if "any" in kinds else as_it_is


def as_it_is(value: Any) -> Any:
    """The value."""
    return value


def as_float(value: Any) -> Any:
    """A number as a float, 0.0 without its sign; what equals no float as it is."""
    # -0.0 + 0.0 is 0.0, and every other float stays as it is.
    if value.__class__ is float:
        return value + 0.0
    return float(value) if value.__class__ is int and float(value) == value else value


def as_whole(value: Any) -> Any:
    """A whole number as an integer, past the range in which each has its own float as a float."""
    if value.__class__ is float and value.is_integer() and abs(value) <= WHOLE_MAX:
        return int(value)
    if value.__class__ is int and abs(value) > WHOLE_MAX and float(value) == value:
        return float(value)
    return value


def text_of(value: Any) -> str:
    """A part of a key as text, as in the name of an actor: as in JSON, without quotes."""
    if value.__class__ is bool:
        return "true" if value else "false"
    return b64encode(value).decode() if value.__class__ is bytes else str(value)
