"""The commands of the server tier: its process, how far that is, and what it has filled.

    headwater server run ────▶ the process of a file of jobs ──▶ tables, views, folders
    headwater server migrate ▶ the same for a job that means something else, and then its views
    headwater server mend ───▶ the folder of a history: what is missing in it
    headwater server compact ▶ the folder of a job: few large files, and no day that is too old
    headwater server status ─▶ its /v1/status                            ▲
    headwater server tables ─▶ the sinks that the same file names ───────┘

Owns the options of these commands, the tables that a person reads, and how the tier's errors are
told (`refusals`). Must not know Spark, nor databases: `server` does, and is imported when a command
runs. Invariant: `status` and `tables` only read.
"""
