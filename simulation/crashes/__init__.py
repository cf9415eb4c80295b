"""One broker that keeps a journal, on a disk that forgets, with clients who come again.

Owns these runs and what is checked of them. Must not know sockets, event loops or the wall clock.
Invariant: a seed and a version of the code determine a run, byte for byte.

    a seed ─▶ scenario ─▶ clients, who repeat what was not answered ─▶ site: a machine
    site ─▶ process (journal, outbox, disk) ─ ends ─▶ lives ─▶ the next process, from the disk
                     └─▶ checks: each result once, as in a run without any crash
"""
