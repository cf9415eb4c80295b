"""Pages of the log in columns: Arrow, typed, at fixed offsets, kept while they are wanted.

Owns the table of columns, the making of a page from rows and the memory of pages that were made.
Must not know HTTP or databases. Invariant: a page of given columns is a function of the rows of its
range alone, so that one that is full never changes and its bytes can be handed out again.

    range asked for → is it a whole page, and is the log past it?
        no  → rows are read and made into columns for this answer alone
        yes → kept bytes, else read, made and kept; the page not used for longest goes

The way: `columns` says which columns there are and what each takes of a row, `encoder` builds the
asked ones alone and is the one place that imports pyarrow, `cache` decides what is kept.

States of a page: not there (the log does not reach its end), full, kept, dropped again. Only the
step to full is for ever; what is dropped is made again from the same rows.
"""

from broker.http.pages.cache import PAGE_OFFSETS, PAGES_BYTES_MAX, KeptPages
from broker.http.pages.columns import COLUMNS, USUAL, PageSelection
from broker.http.pages.encoder import MissingLibraryError, make_page

__all__ = [
    "COLUMNS",
    "PAGES_BYTES_MAX",
    "PAGE_OFFSETS",
    "USUAL",
    "KeptPages",
    "MissingLibraryError",
    "PageSelection",
    "make_page",
]
