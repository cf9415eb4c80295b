"""Names in a rights file: which may be given, and patterns of names.

Owns the form of a user's name and the meaning of `*`. Must not know what is named. Invariant: what
stands in for `{user}` is taken literally, so nobody chooses a name that opens more.
"""

import re
from typing import Final

from broker.rights.topics import USER

NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
NAME_SAYS: Final = "a letter or digit, then up to 63 letters, digits, `.`, `_` or `-`"
PATTERN_CHARS_MAX: Final = 1_024


def pattern_fault(pattern: str) -> str:
    """Return what is wrong with a pattern of names; empty: nothing."""
    if not pattern or len(pattern) > PATTERN_CHARS_MAX:
        return f"a name has 1 to {PATTERN_CHARS_MAX} characters"
    left = pattern.replace(USER, "")
    if "{" in left or "}" in left:
        return f"braces stand for nothing but `{USER}`"
    return ""


def compiled(pattern: str, user: str | None) -> re.Pattern[str] | None:
    """Return `pattern` for this user, to be matched as a whole; None if it needs a user's name."""
    if USER in pattern and not user:
        return None
    texts = (re.escape(part.replace(USER, user or "")) for part in pattern.split("*"))
    return re.compile(".*".join(texts), re.DOTALL)
