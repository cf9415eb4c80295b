"""The admission of new brokers to a network, by a code that holds once and for ten minutes.

Owns the code, which codes hold, what an invited broker is given, and the form in which that
crosses a line that others may listen on. Must not know HTTP, nor how links work. Invariant: a code
admits one broker; what is answered can be read by whoever holds the code and asked, and by nobody
else, also if the code becomes known later; nothing that is given is told of anywhere else.

    the broker that invites                            the one that joins
    desk ── invites (which hold) ── code ─ ─ by hand ─ ─▶ code ── request, sealed
      ▲                                                              │
      └────────────────────────── by HTTP ◀──────────────────────────┘
    authority (its certificate) ── grant, sealed ──▶ folder (configuration, secret, certificate)

An invite is made, then used or over: `made ──▶ used`, `made ──▶ over`; both stay known for a while,
so that who comes too late is told so. Names that were given out are held as long.

A broker that is there already may get another name: `former_names` writes it while the broker is
stopped, and has the old one forgotten when it runs again.
"""
