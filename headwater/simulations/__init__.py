"""`headwater simulate`, carried out: loads of a described network, or a rehearsal of faults.

Owns the way from files to a run of `simulation`, and how its outcome is told: tables, a document, a
drawing. Must not know how brokers work, nor the command line's options. Invariant: the same files
and seed give the same report.

    scenario → loads → the approaches side by side → table, loads_plot
    specifications, faults, events → rehearsal → rehearsal_tables, rehearsal_plot

A run has no states beyond its end: it is read whole before anything is simulated, and what is wrong
in a file is told by its place.
"""
