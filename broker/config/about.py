"""What is said of one setting.

Owns that shape, for every part of the table. Must not know any setting. Invariant: what the reader,
the page and `headwater config show` tell of a setting stands in it.
"""

from typing import Literal

import msgspec


class About(msgspec.Struct, frozen=True):
    """A setting's description, beside its type and default.

    `unit` is what one of it is; `at_least` and `at_most` include their ends; `pattern` must fit the
    whole text and `pattern_says` puts it in words; a `path` is relative to the configuration file;
    a `secret` is never shown, and where it is `never_a_flag` not taken from a command line either;
    a text that has a default can be empty only if it `may_be_empty`; the entries of a table are
    peers with their addresses or attributes with their paths.
    """

    meaning: str
    unit: str = ""
    at_least: int | None = None
    at_most: int | None = None
    pattern: str = ""
    pattern_says: str = ""
    path: bool = False
    secret: bool = False
    may_be_empty: bool = False
    never_a_flag: bool = False
    entries: Literal["peer", "attribute"] = "peer"
