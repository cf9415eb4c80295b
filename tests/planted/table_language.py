"""Faults in checking, in canonical text and in the task graph.

Owns the table for the language. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import ENGINE, LANGUAGE, SCENARIOS, part

GRAPH = part(
    "language/taskgraph.py",
    r"""
declared-order-in-key: the order of a declaration shows in a task's key
- in sorted(event_type.attributes.items())
+ in event_type.attributes.items()

context-of-detect-wins: the context of `detect` stands above an operator's own
- own = pattern.context or context
+ own = context or pattern.context

or-has-a-context: `or` keeps the context of its `detect`
- if pattern.operator in {"or", "without"}:
+ if pattern.operator == "without":

needs-not-followed: a definition that a definition needs is not run
- stack.append(need)
+ wanted.add(need)

region-stays-a-name: a region's name shows in a task's key
- return replace(part, region=names.regions[part.region.name])
+ return part
""",
    tests=(*LANGUAGE, *ENGINE, *SCENARIOS),
)

PRINTING = part(
    "language/printing/patterns.py",
    r"""
right-operand-bare: `B then (A then C)` loses its parentheses
- left, right = _write(node.left, level), _write(node.right, level + 1)
-         return level, f"{left} {operator_text
+ left, right = _write(node.left, level), _write(node.right, level)
+         return level, f"{left} {operator_text

anchor-not-printed: `from A` is lost in canonical text
- f"within {duration_text(node.within_ms)}{anchor}"
+ f"within {duration_text(node.within_ms)}"

open-bound-closed: an open low end is printed as 0 s
- low = "" if bound.low_ms is None else duration_text(bound.low_ms)
+ low = duration_text(bound.low_ms or 0)

where-inside: a `where` loses the parentheses around it
- *_parts(node.operand, _SUFFIXED),
-             (f"where
+ *_parts(node.operand, _WHERE),
+             (f"where
""",
    tests=LANGUAGE,
)

PRINTED_EXPRESSIONS = part(
    "language/printing/expressions.py",
    r"""
difference-bare: `a - (b - c)` loses its parentheses
- left, right = _write(node.left, level), _write(node.right, level + 1)
+ left, right = _write(node.left, level), _write(node.right, level)

unit-not-greatest: a duration is printed in a unit that does not divide it
- if duration_ms % unit[0] == 0)
+ if duration_ms >= unit[0])

control-unescaped: a control character stands bare in a text
- if character.isprintable() or
+ if True or

reserved-bare: a name that is a reserved word loses its backticks
- if name in RESERVED or PLAIN_NAME
+ if PLAIN_NAME
""",
    tests=LANGUAGE,
)

CHECK_PATTERNS = part(
    "language/check/patterns.py",
    r"""
bound-closes-nothing: `last A and[..5 s] B` is refused
- bounded and operator == "and"))
+ bounded and operator == "or"))

within-closes-nothing: a list within T is refused
- replace(around, closed=True, timed=True, listed=True)
+ replace(around, timed=True, listed=True)

last-alone: `last` without a partner is taken
- if not around.partner:
+ if around.partner and not around.closed:

without-leaves-open: a list after `without` is refused
- right = _Around(closed=True)
+ right = _Around(closed=around.closed)
""",
    tests=LANGUAGE,
)

CHECK_EXPRESSIONS = part(
    "language/check/expressions.py",
    r"""
float-is-int: a sum of an int and a float is an int
- return "float" if "float" in {left, right} else "int"
+ return "int" if "int" in {left, right} else "float"

any-comparison: texts are compared with numbers
- if not comparable(left, right):
+ if comparable(left, right) is None:

condition-of-a-number: a number is taken for a condition
- scope.collector.note("HW303", node.span, kind=kind_word(kind))
+ kind = "bool"

region-of-text: a text is asked whether it is in a circle
- if item not in {wanted, "any"}:
+ if item not in {wanted, "any", "text"}:
""",
    tests=LANGUAGE,
)

CHECK_OTHERS = part(
    "language/check/declarations.py",
    r"""
circle-unseen: circular definitions are not noted
- _circle(path[path.index(name) :], declared, collector)
+ continue

users-first: a definition comes before those that it needs
- order.append(path.pop())
+ order.insert(0, path.pop())

twice-unseen: of two subscriptions of one name the second stands
- if key in declared.subscriptions:
+ if key in declared.definitions:
""",
    tests=(*LANGUAGE, *ENGINE),
)

CHECK_TIMES = part(
    "language/check/times.py",
    r"""
start-after-the-occurrence: an assigned start after the occurrence is taken
- if later and isinstance(node, tree.Arithmetic)
+ if isinstance(node, tree.Arithmetic)

any-argument: one argument within the occurrence is enough
- in CHOOSING and all(
+ in _CHOOSING and any(
""",
    tests=LANGUAGE,
)

TABLE = [
    *(GRAPH + PRINTING + PRINTED_EXPRESSIONS),
    *(CHECK_PATTERNS + CHECK_EXPRESSIONS + CHECK_OTHERS + CHECK_TIMES),
]
