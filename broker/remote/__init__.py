"""Requests that concern the whole network: asked of one broker, answered by all that it reaches.

Problem: whoever stands at one broker wants to see and end subscriptions whose homes are others, and
to see how all brokers are. Brokers know no addresses of each other's HTTP faces, and may not be
reachable there; what they have are links.

    facade, MQTT ──▶ subscriptions ──▶ desk ──▶ calls over links ──▶ desk of the other
                          ▲                                                │
                          └────────── its reply, or why there is none ◀────┘

Owns the questions that brokers ask each other for people, and how replies become one answer.
Must not know frames or sockets, and sends nothing unless somebody asks. Invariant: a request is
judged by the rights of the broker where it was made; it ends in a bounded time; whoever is missing
from an answer is named in it, with the reason.

The way: `desk.CallDesk` asks one broker and waits; `subscriptions.NetworkSubscriptions` lists and
ends; what is at home at a broker that is away it lists from the copy of a stand-in, which
`home_copies.HomeCopies` finds. `functions.NetworkFunctions` takes files of user functions, which
travel by themselves once they are here. A list that each broker floods when it changes was
rejected: it would be steady traffic for what is rarely asked.
"""
