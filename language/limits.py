"""What a text may hold at most, in one place, each with its reason.

Knows nothing of the rest. Invariant: whatever passes a limit is refused with a diagnostic.
"""

TEXT_LENGTH_MAX = 1 << 20
"""Characters of one text: a thousand subscriptions are some 400,000."""

ITEMS_MAX = 10_000
"""Declarations, definitions and subscriptions of one text."""

NESTING_MAX = 64
"""Levels of a tree, so that walking one by recursion never meets Python's own limit.

A chain such as `A then B then C` is a level per link."""

NAME_LENGTH_MAX = 128
"""Characters of a name: names become parts of MQTT topics, which end at 65,535 bytes."""

STRING_LENGTH_MAX = 4_096
"""Characters of a text constant."""

SET_MEMBERS_MAX = 10_000
"""Members of a set."""

LIST_LENGTH_MAX = 1_000
"""Attributes, assignments, keys or cases of one item: more are data, which belong in a table."""

INTEGER_MAX = (1 << 63) - 1
"""Integers are signed, of 64 bits, in every format that carries them."""

DURATION_MS_MAX = 36_525 * 24 * 3_600_000
"""A hundred years: longer is a slip of the pen, and sums of a few stay far from 64 bits."""

WINDOW_MS_MAX = 366 * 24 * 3_600_000
"""A leap year: what a window still needs is held all that time, and read again after a restart."""

WINDOWS_AT_ONCE_MAX = 10_000
"""Windows that one event lies in, which is range by every: each may have to be told of."""

DISTANCE_M_MAX = 1_000_000_000
"""A million kilometres, far beyond the earth, for regions in metres as well."""

DIAGNOSTICS_MAX = 1_000
"""Diagnostics of one text: nobody reads more, and looking for more takes time."""

ECHO_LENGTH_MAX = 40
"""Characters of the text that a message repeats."""

SOURCE_LINE_LENGTH_MAX = 120
"""Characters of a source line that the report shows around the caret."""
