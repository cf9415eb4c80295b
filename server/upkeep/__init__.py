"""What is done to jobs, tables and folders by command, beside the streams that fill them.

    migration   a new version of a job: filled beside the former one, then shown, then the former
                one's consumers go
    versions    which version of a job is shown, and what the server may run by that
    consumers   the consumers at the brokers of versions that are shown no more
    repair      the gaps of a history, filled from brokers and from other histories
    compaction  small files merged into large ones, and old days dropped
    listing     the changes to Spark's list of files under both; folders, their claim of a folder

Owns every change to what jobs have filled that is not a batch. Must not know Spark's plans: a
migration runs streams as the server does. Invariant: each step may be cut off anywhere and be run
again; what people see is the former state or the next one, never one between.

A version goes through these states, each written down where the next one looks:

    none ──▶ filled (checkpoint, table of its own) ──▶ shown (views, folders, state/JOB.shown)
         ──▶ alone (the consumers of all other versions are forgotten by the brokers)
"""
