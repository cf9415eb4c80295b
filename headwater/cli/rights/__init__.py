"""The commands that keep a broker's rights file: users, tokens, and the reading of it again.

    headwater user add|passwd|remove|list ──▶ rights_file ──▶ rights.toml ◀── headwater token add|…
                                                                  ▲
    headwater reload ──▶ a running broker ────────────────────────┘ reads it again

Owns the changing of single tables of the file. Must not know what rights mean: `broker.rights`
does, and reads each text before it is written. Invariant: no password and no token is printed but
the token that was just made, once; lines that are not of the table in hand stay as they were.
"""
