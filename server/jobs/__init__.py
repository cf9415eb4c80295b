"""The ready jobs: what each makes of the results of brokers.

Owns the plans that Spark runs. Must not know sinks. Invariant: what a job gives depends on the
results that it reads and on nothing else, so that a batch that is run again gives the same.
"""
