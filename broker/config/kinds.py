"""The sections of which there may be several.

Owns that list. Must not know how they are read. Invariant: each is an attribute of `Config` of the
same name, a dict by the names.
"""

from typing import Any, Final

from broker.config.joins import JOINS_MAX, JoinSection
from broker.config.mappings import MAPPINGS_MAX, MappingSection
from broker.config.named import Kind

NAMED: Final = {
    "joins": Kind("server", JOINS_MAX, "joined"),
    "mappings": Kind("mapping", MAPPINGS_MAX, "taken"),
}
NAMED_TYPES: Final[dict[str, type[Any]]] = {"joins": JoinSection, "mappings": MappingSection}
