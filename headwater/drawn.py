"""Texts in pictures: what strangers named, as SVG takes it.

Owns what becomes of characters that a picture cannot hold. Must not know what is drawn. Invariant:
whatever the text, the picture stays well-formed.
"""

from __future__ import annotations

from xml.sax.saxutils import escape


def drawn(text: str) -> str:
    """The text within an SVG element; what cannot be seen is drawn as a replacement character."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
