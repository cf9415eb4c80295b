"""Patterns: what a relation between occurrences asks, with exact times and with uncertain ones.

Owns the test of each relation of the language (`relations`), and the verdicts over times that are
known up to an uncertainty (`uncertainty`). Operators, stores and partitions come here from
`broker.core` as they are touched.

Must not know events' payloads, definitions or who waits for an answer: all that is asked about is
the start, the end and the uncertainty of what fills a place.

Invariant: where times are exact a verdict is yes or no, and never maybe.
"""
