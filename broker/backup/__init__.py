"""A copy of what a running broker keeps, and the way back from it.

Owns the form of a backup: its files, its manifest, how it is taken, received and put in place.
Must not know HTTP, configurations or what journal and database mean. Invariant: a backup that has
its manifest is whole, and is a state that a crash of the broker could have left.

    a running broker ──▶ source ──▶ a tar by HTTP ──▶ target ──▶ a directory ──▶ target ──▶ the
                                                     (receive)    with a       (restore)   place
                                                                  manifest
"""
