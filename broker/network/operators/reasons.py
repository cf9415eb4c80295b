"""Why events travel as they do, in words for those who wrote the pattern.

Owns the sentences. Must not know how it is decided. Invariant: each says what of the text decides,
so that one can change it.
"""

from __future__ import annotations

from typing import Final

# Correlated: one that has no partner stays where it is.
UNRESTRICTED: Final = "one without partners is in no occurrence"
PAIR: Final = "`{}` chooses among pairs, and one without a partner is in none"

# Alone: whatever meets the conditions travels.
ALL_ALONE: Final = "each is an occurrence by itself"
SIDE: Final = "a side of `or` needs no partner"
NO_PARTNER: Final = "nothing else that comes from elsewhere has to be near it"
UNBOUNDED: Final = "nothing says how near its partners are; a `within` around them would"
LONG: Final = (
    "with how long events may last, or how uncertain their times are, its partners may be more than"
    " a day away; a `within` around them would bring them nearer"
)
MANY_WAYS: Final = "every place may stay empty, in more ways than are asked for one by one"
CHOSEN: Final = "`{}` chooses among all of them"
COUNTED: Final = "they are counted, so that each one counts"
LISTED: Final = "it is decided for each list as a whole what is in it"
WITHOUT: Final = "`without` is about those that are in no occurrence"
ABSENT: Final = "`absent` is about those that are not there"
ANYHOW: Final = "each of them is asked for anyhow"
WINDOW: Final = "a window counts all of them"

# Whole: events of a type travel whatever they say.
NEXT: Final = "with `next` any event of a named type could lie between"
BEGINS: Final = "with `group by` a silence begins with any event of the partition"
