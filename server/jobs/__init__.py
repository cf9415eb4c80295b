"""The ready jobs: what each makes of the results of brokers.

Owns the plans that Spark runs. Must not know sinks. Invariant: what a job gives depends on the
results that it reads and on nothing else, so that a batch that is run again gives the same.

    a job of the configuration ─▶ reading: logs, a history, or both ─▶ rows
    rows ─▶ kinds: detect, aggregate, raw … each a plan of Spark ─▶ the sinks of the job
"""
