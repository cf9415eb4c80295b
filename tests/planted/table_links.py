"""Faults in links and the topology: what is doubled, lost, believed or counted wrongly.

Owns the table for `broker/network/session` and `broker/network/overlay`. Must not know how faults
are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

LINKS = ("tests/broker/network/session",)
TOPOLOGY = ("tests/broker/network/overlay",)

SESSION = part(
    "broker/network/session/session.py",
    r"""
link-turn: of two connections the one that was chosen first is kept
- if self.up and candidate.hello.epoch == self.peer_epoch and frame.turn <= self.turn:
+ if self.up and candidate.hello.epoch == self.peer_epoch and frame.turn < self.turn - 1:

link-epoch-resumed: a broker that was restarted goes on where its earlier life was
- mine_known = (frame.known_epoch, frame.known_stream) == (self.epoch, self._stream)
+ mine_known = frame.known_stream == self._stream

link-stream-stays: a fresh beginning that the other has not heard of is gone on with
-             self._stream += 1
-             self._restart()
-         self.peer_epoch
+             self._restart()
+         self.peer_epoch

link-lapse-hidden: what was given up is gone on with
-         self._peer_stream = 0  # which cannot be gone on with
-         if
+         if

link-nothing-again: what was under way when a connection was cut is not sent again
- self._telling.say_all(again)
+ self._telling.say_all(again[1:])

link-grant-lost: after a reconnection credit is not told again
- self._in.tell_again()
+ self._in.received

link-silence: a silent neighbour is never cut
- elif late_ms >= 0:
+ elif late_ms >= limits.heartbeat_ms:

link-slept: a broker that slept cuts all its neighbours
- if late_ms >= limits.heartbeat_ms and not self._excused:
+ if late_ms < 0:

link-control-late: events leave before control that was offered before them
-                 if out.control:
-                     self._telling.say_all(out.control_frames())
-                 if out.events:
-                     self._flush_events(now_ms)
+                 if out.events:
+                     self._flush_events(now_ms)
+                 if out.control:
+                     self._telling.say_all(out.control_frames())

link-choked: frames are written to a socket that takes none
- if not self._choked:
+ if True:
""",
    tests=LINKS,
)

SIDES = [
    *part(
        "broker/network/session/inbound.py",
        r"""
link-repeat: a frame that comes again is delivered again
- if frame.seq <= self.received:
+ if frame.seq < self.received:

link-gap: a frame that is missing is not missed
- if frame.seq != self.received + 1:
+ if frame.seq < self.received + 1:

link-held: what is held is not counted
-             self.waiting.append(frame)
-             return None
+             self.waiting.append(frame)
+             self._use(frame)
+             return None

link-credit-byte: bytes beyond the credit are taken
- or self._bytes_seen >= self._bytes_granted
+ or self._bytes_seen > 2 * self._bytes_granted + 5000
""",
        tests=LINKS,
    ),
    *part(
        "broker/network/session/outbound.py",
        r"""
link-kept: the last frame that was acknowledged is kept
- while kept and kept[0][0] <= seq:
+ while kept and kept[0][0] < seq:

link-waiting: the limit of what waits is passed
- self.waiting_events + weight > limits.waiting_events_max
+ self.waiting_events > limits.waiting_events_max

link-oversold: events are sent without credit
- self._events_sent < self._events_granted
+ self._events_sent <= self._events_granted + 200

link-share: events of a long list are counted wrongly
- share, rest = divmod(events, len(messages))
+ share, rest = events // len(messages), 0
""",
        tests=LINKS,
    ),
    *part(
        "broker/network/session/frames.py",
        r"""
frame-length: a frame of no bytes is waited for
- if not 0 < size <= self._limit_bytes:
+ if not 0 <= size <= self._limit_bytes + 1:

frame-joined: bytes that came in pieces are put together in the wrong order
- b"".join([self._data[self._at :], *self._later])
+ b"".join([*self._later, self._data[self._at :]])
""",
        tests=LINKS,
    ),
    *part(
        "broker/network/session/choosing.py",
        r"""
link-simultaneous: two that dial at once change back and forth
- return up_ms is not None and new.hello.holds < turn and new.opened_ms > up_ms
+ return True

link-lost-end: a neighbour that lost its end has to wait
- return new.hello.attempt > current.hello.attempt
+ return new.hello.attempt < current.hello.attempt
""",
        tests=LINKS,
    ),
]

TREE = [
    *part(
        "broker/network/overlay/tree.py",
        r"""
tree-cost: the cost of links is not looked at
- enumerate(sorted(edges))
+ enumerate(sorted(edges, key=lambda edge: (edge.low, edge.high)))

tree-order: links are taken as they come
- enumerate(sorted(edges))
+ enumerate(edges)

tree-hops: a neighbour counts no hop
- self.hops[name] = self.hops[parent] + 1
+ self.hops[name] = max(1, self.hops[parent])
""",
        tests=TOPOLOGY,
    ),
    *part(
        "broker/network/overlay/topology.py",
        r"""
tree-one-side: a link of which one end alone tells is believed
- if back is not None:
+ if back is not None or far is None:
+                         back = cost if back is None else back

tree-flood: news is not passed on
- effects += self._flood(newer, told.peer)
+ effects += self._flood(newer[:1], told.peer)

tree-older: who tells old news is not told the new
- effects += self._tell(told.peer, older)
+ effects += self._tell(told.peer, older[1:])

tree-outdone: a broker that others forgot stays forgotten
- self._states[self.me] = replace(own, epoch=max(own.epoch, state.epoch), seq=state.seq)
-         return self._say_own(now_ms)
+ return []

tree-anew: a neighbour that is new is told nothing
- if new or told.fresh:
+ if told.fresh and not new:

tree-cost-side: of two costs the less counts
- found.append(Edge(max(cost, back), name, other))
+ found.append(Edge(min(cost, back), name, other))

tree-soon: a cut that heals soon is told to all
- lost = [n for n, s in self._down_ms.items() if now_ms - s >= limits.down_after_ms]
+ lost = list(self._down_ms)
""",
        tests=TOPOLOGY,
    ),
]

TABLE = [*SESSION, *SIDES, *TREE]
