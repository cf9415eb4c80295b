"""How a planted mistake is found: by the first of seeded runs of a network that is not good.

Owns the search. Must not know which mistake it is. Invariant: what is taken for found is what a
check of the run or of recovery tells, never any error.
"""

from broker.core.recovery.durable_listed import RecoveryError
from simulation.network.scenario import RunFailedError

SEEDS = 200


def found_from(run, kind, first=0, seeds=SEEDS):
    """The first seed from `first` on, below `seeds`, at which a run of the kind tells of a mistake.

    Raises AssertionError where none does, or where one fails of anything else.
    """
    for seed in range(first, seeds):
        error = told_of(run, seed)
        if error is not None:
            assert isinstance(error.__cause__, AssertionError | RecoveryError), error
            assert f"python -m simulation --kind {kind} --seed {seed})" in str(error), error
            return seed
    raise AssertionError(f"not found within {seeds} seeds")


def told_of(run, seed):
    try:
        run(seed)
    except RunFailedError as error:
        return error
    return None
