"""Who may do what: one table from one file, asked by every door of a broker alike.

Problem: a broker is reached over MQTT, over HTTP and through joined servers. A right that holds at
one of these doors alone is none. So a door decides nothing itself: it names the request and asks.

    rights.toml ── reader ──▶ table (roles, users, tokens, quotas: validated structs)
                                │
          requests (which right a request or path needs)  roles (the five that are built in)
                                │            │
                                ▼            ▼
    MQTT, HTTP, joined servers ──▶ judge: may this user publish here, read this type, drive
                                          this actor, speak as this name, drain this broker?

Owns the form of the file, what rights mean and the table of requests. Must not know sockets, files,
clocks or who connects: names come in, and so does the time. Invariant: what no role grants is
denied, a `deny` wins over every grant, and a file with one fault is refused whole.

The way: `reader.read_rights` makes a `table.RightsTable` of the tables of a TOML file;
`judge.RightsJudge` answers questions about it; when the file is read again, another one takes its
place.
"""
