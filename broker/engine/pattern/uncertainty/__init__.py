"""What is asked of times and values, and how certain the answer is: yes, maybe or no.

Owns verdicts over intervals of which the ends are known up to an ε (`uncertainty`), the tests of
relations and the search of partners (`relations`), limits and spans (`verdicts`), and these asked
of one event (`matching`), of two sides (`weighed`), of a part of a chain (`judge`) and of a whole
occurrence (`whole`).

Must not know how candidates come together, what is kept, or when anything is decided.

Invariant: where times are exact and nothing drifts, the answer is yes or no and that of the plain
comparison; a yes holds for all readings within ε, a no for none.
"""
