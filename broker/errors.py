"""Why a broker does not start.

Owns the error. Must not know its causes. Invariant: its text is one sentence for a person.
"""


class StartError(Exception):
    """The broker cannot start as it is configured; the text says why and what to do."""
