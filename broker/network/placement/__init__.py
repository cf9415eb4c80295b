"""Which broker runs which tasks: terms, what a home records of them, and what it says to hosts.

Owns the unit that moves between brokers, a *cell* (the tasks of a submission, or of a part of it):
the terms and snapshots that its home remembers (`book`, from the records in `home_records`), what
homes and hosts say to each other (`cell_messages`, brought by `mail` in `parcels`), what of that a
home has yet to take (`home_reports`), and when a state goes home (`snapshot_pace`, as `compression`
makes it). Must not know what tasks compute, how events reach them, or why a plan has them where
they are.

Problem: tasks move while they run, and hosts, homes and links fail meanwhile. So whatever has to
outlast a host is at the home, and a host is only ever asked for what is written there.

Invariant: of the terms of a cell one serves at a time, as its home records; what lets others forget
something (results taken, a snapshot stored, a term over) is said behind the record of it; and every
message may be lost, come late or come twice without any other effect than delay.

The way through it: a plan names a broker, the home records it and asks that broker (`Wanted`); the
host says whether it runs the term, gets what it lacks (`Hosted`), sends results and snapshots, and
is told when they are the home's. A term ends when the home says so, or is asked whether it did.

    placed ─▶ starting ──first snapshot──▶ active ──placed elsewhere──▶ moving
                 ▲                          ▲                             │ snapshot of the new term
                 └──host lost, refused──────┴─────────────────────────────┘
"""
