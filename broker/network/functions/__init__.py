"""User functions that are given to one broker and run wherever a task runs.

Problem: a text calls a function by name, and its task runs at any broker of the network. A file of
functions that is configured at each broker by hand is missing where a task goes next, or is another
version there.

    give, remove ──▶ core (journal, snapshot) ──▶ register ──▶ names that texts may call
                          ▲                          │
                          └─────── exchange ◀────────┘ what is fresh
                                      │
                                 neighbours: stated ──▶ wanted ──▶ given

Owns the files (`files`), which of them are in force at a broker and which functions they bring
(`register`), and what neighbours say of them to each other (`exchange`). Must not know links, disks
or how a file is run: whoever makes a register hands in a loader, or none.

A file goes by its name; of two files of one name the later counts, by (counter, broker). A removal
is a file without contents, and travels as one. A broker without a loader keeps files and passes
them on, and runs none.

The states of a file name at a broker:

    unknown --given here, or by a neighbour--> in force
    in force --a later file--> in force;  --a later removal--> removed
    removed --a later file--> in force

A replaced or removed file that an installed text still calls is kept by its digest until no text
calls it: a text goes on with the functions that it was checked with, as it does with its tables.

Invariant: brokers that have heard of the same files have the same files in force, whatever the
order. The version of a function holds its file's digest, and a task's key holds the version; so a
task is never made again from another file than the one it was checked with.

A signature over each file by the links' shared secret was rejected: every broker of a network holds
that secret, so it would prove no more than the link does. A file is taken from a neighbour because
the link has proven that the neighbour is a member; who gave the file is recorded at the broker that
judged the right, and is not proven further.
"""
