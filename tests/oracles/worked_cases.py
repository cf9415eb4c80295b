"""All worked cases: what the language's description says of small traces, written out by hand.

Owns: the table that both the reference matcher and the product are held to.
Must not know: any matcher. Invariant: a case's text and its data say the same.
"""

from tests.oracles.worked import Expected, WorkedCase
from tests.oracles.worked_definitions import DEFINITIONS, WINDOWS
from tests.oracles.worked_examples import EXAMPLES
from tests.oracles.worked_patterns import PATTERN_CASES
from tests.oracles.worked_relations import RELATED

WORKED_CASES: tuple[WorkedCase, ...] = PATTERN_CASES + RELATED + DEFINITIONS + WINDOWS + EXAMPLES

__all__ = ["WORKED_CASES", "Expected", "WorkedCase"]
