"""Whether a value will do for a setting.

Owns the check of one value and the reading of one from text. Must not know where the value stood.
Invariant: what is returned has the setting's type and lies within its limits.
"""

import re
from typing import Any

from broker.config.errors import SettingRefusedError
from broker.config.links import ADDRESS_SAYS, address_of
from broker.config.mappings import PATH_SAYS
from broker.config.mappings import check_attribute as good_attribute
from broker.config.table import Setting
from broker.rights.names import NAME_PATTERN, NAME_SAYS

BITS_SHOWN_MAX = 128  # of a number that is refused

_KINDS = {
    bool: "a truth value",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a text",
    list: "a list",
    dict: "a table",
}


def checked(setting: Setting, value: object) -> Any:
    """The value, or `SettingRefusedError` with what was found and what was expected."""
    if type(value) is not setting.kind:
        shown = _kind(value) if setting.about.secret else _found(value)
        raise SettingRefusedError(f"found {shown}, expected {setting.expected}")
    if isinstance(value, str):
        _check_text(setting, value)
    elif isinstance(value, int) and setting.kind is int:
        low, high = setting.about.at_least, setting.about.at_most
        if (low is not None and value < low) or (high is not None and value > high):
            raise SettingRefusedError(f"found {_number(value)}, expected {setting.expected}")
    return value


def from_text(setting: Setting, text: str) -> Any:
    """The value that a text from the environment or a flag stands for, unchecked."""
    if setting.kind is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if setting.kind is int and re.fullmatch(r"[+-]?\d{1,18}", text.replace("_", "")):
        return int(text)
    return text


def check_peer(name: str, address: object) -> str:
    """The address of a peer, or `SettingRefusedError`."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise SettingRefusedError(f"the broker name `{name}` will not do, expected {NAME_SAYS}")
    if not isinstance(address, str):
        raise SettingRefusedError(f"found {_found(address)}, expected {ADDRESS_SAYS}")
    try:
        address_of(address)
    except ValueError as error:
        raise SettingRefusedError(str(error)) from None
    return address


def check_attribute(name: str, path: object) -> str:
    """The path of a mapping's attribute, or `SettingRefusedError`."""
    if not isinstance(path, str):
        raise SettingRefusedError(f"found {_found(path)}, expected {PATH_SAYS}")
    try:
        return good_attribute(name, path)
    except ValueError as error:
        raise SettingRefusedError(str(error)) from None


def _check_text(setting: Setting, value: str) -> None:
    about = setting.about
    if "\0" in value:
        raise SettingRefusedError("found a text with the character NUL, which no name can have")
    if setting.choices and value not in setting.choices:
        raise SettingRefusedError(f'found "{value}", expected {setting.expected}')
    if about.pattern and not re.fullmatch(about.pattern, value):
        raise SettingRefusedError(f'found "{value}", expected {setting.expected}')
    if not value and setting.default and not about.may_be_empty:
        raise SettingRefusedError(f"found an empty text, expected {setting.expected}")


def _found(value: object) -> str:
    shown = f'"{value}"' if isinstance(value, str) else _number(value).lower()
    kind = _kind(value)
    return f"{kind} ({shown[:40]})" if not isinstance(value, list | dict) else kind


def _number(value: object) -> str:
    """As text; Python writes no number of thousands of digits, though it reads one in base 16."""
    long = isinstance(value, int) and value.bit_length() > BITS_SHOWN_MAX
    return f"a number of more than {BITS_SHOWN_MAX} bits" if long else str(value)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date or time")
