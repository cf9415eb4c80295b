"""A plan: which broker runs what, and over which links each stream goes.

Owns the plan's types. Must not know what a plan costs (`flow`), nor how it is written. Invariant: a
plan has one host for each piece of the layout that it was made for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Routes = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Plan:
    """A host for each piece of a layout (numbers, in its order), and explicit routes by stream."""

    hosts: tuple[int, ...]
    routes: Routes = field(default_factory=dict)
