"""All worked cases: what the language's description says of small traces, written out by hand.

Owns: the table that both the reference matcher and the product are held to.
Must not know: any matcher. Invariant: a case's text and its data say the same.

`WORKED_CASES_WHOLE` is all of the language; `WORKED_CASES` is what the engine runs by now, too.
"""

from tests.oracles.worked import Expected, WorkedCase
from tests.oracles.worked_contexts import CONTEXT_CASES
from tests.oracles.worked_definitions import DEFINITIONS, WINDOWS
from tests.oracles.worked_examples import EXAMPLES
from tests.oracles.worked_lists import LIST_CASES
from tests.oracles.worked_negations import FURTHER_OUT, NEGATION_CASES
from tests.oracles.worked_patterns import PATTERN_CASES
from tests.oracles.worked_relations import RELATED
from tests.oracles.worked_thinned import THINNED_CASES
from tests.oracles.worked_uncertain import UNCERTAIN_CASES
from tests.oracles.worked_values import TABLE_CASES, VALUE_CASES
from tests.oracles.worked_windows import MORE_WINDOWS

WORKED_CASES: tuple[WorkedCase, ...] = (
    *PATTERN_CASES,
    *RELATED,
    *NEGATION_CASES,
    *LIST_CASES,
    *CONTEXT_CASES,
    *THINNED_CASES,
    *UNCERTAIN_CASES,
    *DEFINITIONS,
    *WINDOWS,
    *MORE_WINDOWS,
    *EXAMPLES,
    *VALUE_CASES,
)
# Those of tables need the table's file beside that of the specification.
WORKED_CASES_WHOLE: tuple[WorkedCase, ...] = (*WORKED_CASES, *FURTHER_OUT, *TABLE_CASES)

__all__ = ["WORKED_CASES", "WORKED_CASES_WHOLE", "Expected", "WorkedCase"]
