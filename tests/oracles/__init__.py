"""Slow, evident counterparts of what the product computes fast; they import nothing of it.

To hold something against the reference matcher by hand, also what `CONSTRUCTS` (what the engine
runs by now) does not hold yet:

    from tests.oracles.compare import compare
    from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
    from tests.oracles.matcher import run
    from tests.oracles.render import text_of

    spec, events = random_case(7, "list", "chronicle")   # seed, construct, context
    print(text_of(spec))                                 # what the code under test is given
    expected = run(spec, events)                         # results in order
    print(compare(spec, expected, actual))               # [] if `actual` agrees

What a difference needs, `shrink` finds: `shrunk(spec, events, differs)` asks `differs` of ever
smaller cases.

Where `spec.tables` is not empty their files must stand beside that of the specification: write what
`recipes_values.files_of(spec)` lists, and tell the code under test the file's name.

`WORKED_CASES_WHOLE` in `worked_cases` are cases by hand: `text`, `events`, `expected`; `unmet(case,
actual)` tells what differs. Readings that the language's description leaves open stand in
READINGS.md. What the engine runs moves from `CONSTRUCTS_WHOLE` to `CONSTRUCTS`, from
`CONTEXTS_WHOLE` to `CONTEXTS`, and from `WORKED_CASES_WHOLE` to `WORKED_CASES`.
"""
