"""Faults in the MQTT face: bytes, topics, what is owed to a client and what is retained.

Owns the table for `broker/mqtt`. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import MQTT, part

WIRE = part(
    "broker/mqtt/codec/wire.py",
    r"""
varint-edge: 16,384 is written in two bytes
- if value < 0x4000:
+ if value <= 0x4000:

varint-overlong: a length that is longer than it needs to be is read
- if byte == 0 and shift:
+ if byte == 0 and shift > 7:

packet-id-zero: a packet identifier of 0 is read
- if value == 0:
+ if value < 0:

bytes-after-the-last: bytes after the last field are passed over
- if self.position != self.end:
+ if self.position > self.end:

null-character: U+0000 is read in a text
- if "\0" in value:
-         raise malformed
+ if value == "\0":
+         raise malformed
""",
    tests=MQTT,
)

DECODE = part(
    "broker/mqtt/codec/bodies.py",
    r"""
qos-three: a PUBLISH of QoS 3 is read
- if qos == 3:
+ if qos > 3:

dup-of-nothing: a duplicate of QoS 0 is read
- if dup and qos == 0:
+ if dup and qos > 2:

will-flags: a will of QoS 3 is read
- if bits & 0x18 == 0x18 or
+ if bits & 0x18 == 0x20 or

reserved-options: reserved bits of a subscription are passed over
- options & (0xC0 if v5 else 0xFC)
+ options & (0x80 if v5 else 0xFC)

clean-start-as-retain: the will's retain flag is taken for another
- bool(bits & 0x20), properties)
+ bool(bits & 0x02), properties)
""",
    tests=MQTT,
)

ENCODE = part(
    "broker/mqtt/codec/encoder.py",
    r"""
qos-bit: QoS is written one bit too far
- packet.dup << 3 | packet.qos << 1
+ packet.dup << 3 | packet.qos << 2

will-qos-bit: a will's QoS is written one bit too far
- 0x04 | will.qos << 3
+ 0x04 | will.qos << 4

password-without-flag: a password comes without its flag
- bits |= 0x40
+ bits |= 0x00
""",
    tests=MQTT,
)

CODEC = part(
    "broker/mqtt/codec/decoder.py",
    r"""
short-way-too-long: the short way takes a packet that is larger than allowed
- if stop <= end and stop - position <= bytes_max:
+ if stop <= end:

held-twice: what is held is read again
- self.held.clear()
-         self._need = 0
+ self._need = 0

same-prefix-of-topic: a topic that begins like the last is taken for it
- if not data.startswith(self._last_head, start):
+ if not data.startswith(self._last_head[:-1], start):

length-of-five: a remaining length of five bytes is waited for
- if shift == 28:
+ if shift == 35:
""",
    tests=MQTT,
)

TOPICS = part(
    "broker/mqtt/codec/topics.py",
    r"""
parent-unmatched: `a/#` does not match `a`
- matching.extend(node.beneath.items())  # "a/#"
+ matching.extend(node.here.items())  # "a/#"

dollar-matched: a wildcard at the first level matches `$SYS`
- if plain or depth:
+ if plain or not depth:

removed-with-others: with one filter its neighbours go
- while path and not (node.here or node.beneath or node.children):
+ while path and not (node.here or node.children):

replaced-counted-twice: a replaced subscription is counted twice
- new = key not in table
+ new = table.get(key) is not value

levels-unbounded: a filter may have one level more
- if len(levels) > levels_max:
+ if len(levels) > levels_max + 1:

retained-dollar: `#` finds what is retained beneath `$`
- if not level.startswith("$")]
+ if level != "$"]
""",
    tests=MQTT,
)

OUTGOING = part(
    "broker/mqtt/sessions/client_queue.py",
    r"""
receive-max-passed: one message more than a client takes is under way
- len(self._releasing) < pipe.receive_max
+ len(self._releasing) <= pipe.receive_max

ids-from-zero: the packet identifier after the last is 0
- packet_id = self._last_id % 0xFFFF + 1
+ packet_id = (self._last_id + 1) % 0x10000

id-in-use: a packet identifier that is in use is given again
- while packet_id in self._inflight or
+ while packet_id in self._waiting or

id-not-free-yet: a packet identifier is given again before its PUBCOMP
- while packet_id in self._inflight or packet_id in self._releasing:
+ while packet_id in self._inflight:

resent-unmarked: what is sent again is not marked as a duplicate
- 0b1000 | held.qos << 1
+ held.qos << 1

released-twice: what a client has at QoS 2 is sent to it once more
- self._forget(packet_id)
-             self._counters
+ self._counters

released-expires: a message at QoS 2 that was begun expires
- not (again and held.qos == 2)
+ held.qos

sent-elsewhere-too: what a member may have at QoS 2 goes to another
- if held.share and held.qos == 1
+ if held.share

expiry-edge: a message that expires now is sent
- expires_ms <= now_ms and
+ expires_ms < now_ms and

confirmed-bytes-stay: what was confirmed still counts as queued
- self.room.charge(-held.message.size_bytes)
-         if held.place
+ if held.place
""",
    tests=MQTT,
)

ROOM = part(
    "broker/mqtt/sessions/client_queue.py",
    r"""
queue-edge: one message more than allowed waits
- waiting >= limits.queue_messages_max
+ waiting > limits.queue_messages_max

total-of-one: what all queues hold together is not bounded
- total_bytes = counters.queued_bytes + size_bytes
+ total_bytes = held_bytes
""",
    tests=MQTT,
)

ROUTER = part(
    "broker/mqtt/routing/router.py",
    r"""
worst-qos: of overlapping subscriptions the least QoS counts
- max(item.filter.qos for item in subscriptions)
+ min(item.filter.qos for item in subscriptions)

retained-bytes-leak: a replaced message still counts as retained
- before.size_bytes if before is not None else 0
-         )
-         if self.keeping
+ 0
+         )
+         if self.keeping

old-expiry-kept: a message goes when the one that it replaced would have
- timer.cancel()
+ pass
""",
    tests=MQTT,
)

TIMERS = part(
    "broker/mqtt/sessions/timers.py",
    r"""
timer-one-late: a timer fires after its moment
- self._heap[0].when_ms <= now_ms:
+ self._heap[0].when_ms < now_ms:

ties-turned: of two timers of one moment the later goes first
- return (self.when_ms, self.order) < (other.when_ms, other.order)
+ return (self.when_ms, -self.order) < (other.when_ms, -other.order)
""",
    tests=MQTT,
)

SUBSCRIBING = part(
    "broker/mqtt/sessions/subscriptions.py",
    r"""
retain-handling-one: a subscription that is there already gets what is retained
- (item.retain_handling == 1 and new)
+ item.retain_handling == 1

told-less: SUBACK tells of less than what is granted
- codes.append(item.qos)
+ codes.append(min(item.qos, 1))

limit-one-more-filter: a client may subscribe once more than allowed
- len(session.subscriptions) >= hub
+ len(session.subscriptions) > hub
""",
    tests=MQTT,
)

_KEPT = (
    "tests/broker/mqtt/test_keeping.py",
    "tests/broker/mqtt/test_writing.py",
)

KEEPING = part(
    "broker/mqtt/storage/batches.py",
    r"""
body-once-too-often: a message that is in one queue still goes from the disk
- if not message.keepers:
-             self.batch.remove
+ if message.keepers < 2:
+             self.batch.remove

gone-as-of-now: a session that is absent is stored as if it were connected
- None if session.connection is not None else session.gone_ms + self.wall_ms()
+ None

expiry-in-own-time: a message's expiry is stored by a clock that begins anew
- message.expires_ms + self.wall_ms() if message.expires_ms else 0
+ message.expires_ms

later-first: of two batches the older one counts
- self.batch = batch.before(self.batch)
+ self.batch = self.batch.before(batch)
""",
    tests=_KEPT,
)

KEPT = part(
    "broker/mqtt/storage/rows.py",
    r"""
born-and-gone: a row that came and went is taken from the disk all the same
- del self.rows[key]
+ self.rows[key] = None
""",
    tests=_KEPT,
)

WRITING = part(
    "broker/mqtt/storage/writer.py",
    r"""
awaited-batch-left: an empty batch for which somebody waits is not taken
- elif keeping.awaited >= keeping.number:
+ elif keeping.awaited > keeping.number:
""",
    tests=_KEPT,
)

RESTORING = part(
    "broker/mqtt/storage/restoration.py",
    r"""
numbers-anew: numbers of messages are given again after a restart
- keeping.messages_last = max(keeping.messages_last, row.number)
+ pass

places-anew: places in queues are given again after a restart
- keeping.places_last = max(keeping.places_last, place.place)
+ pass

clock-set-back: a clock that was set back prolongs a session
- session.gone_ms = min(gone_ms, self._now_ms)
+ session.gone_ms = gone_ms

will-at-once: the delay of a will is forgotten
- if delay_ms:
+ if delay_ms < 0:

rights-as-before: a subscription stays though its user may not have it any longer
- if hub.authorize is not None and not hub.authorize
+ if hub.authorize is None and not hub.authorize
""",
    tests=_KEPT,
)

WAITING = part(
    "broker/mqtt/sessions/connection.py",
    r"""
let-go-one-early: bytes leave before their batch is durable
- self.held_back[0][0] <= number
+ self.held_back[0][0] <= number + 1

tagged-before: what was said last is not held back with the rest
- first = since if since >= 0 else max(0, len(held_back) - 1)
+ first = len(held_back)

taken-twice: a message at QoS 2 that the application has is handed up again
- if token is not None:
+ if token is None and packet.dup:
""",
    tests=MQTT,
)

SOCKETS = part(
    "broker/mqtt/driver.py",
    r"""
turn-not-waited-for: a socket with much in it is read again at once
- if (full or self._wait is not None) and not self.transport.is_closing():
+ if self._wait is not None and not self.transport.is_closing():

turn-undivided: each of many floods takes a whole turn
- share_s = TURN_S / (len(self.busy) + 1)
+ share_s = TURN_S

closed-both-ways: a client that writes is reset instead of told
- if linger_bytes and transport.can_write_eof():
+ if not linger_bytes and transport.can_write_eof():

lingers-for-ever: what comes after the end is not counted
- self._linger_bytes -= size_bytes
+ self._linger_bytes -= 0
""",
    tests=("tests/broker/mqtt/test_turns.py",),
)

SLOWING = part(
    "broker/mqtt/sessions/connection.py",
    r"""
slowed-for-itself: a client that hears itself is not read, nor what it confirms
- if queue is not own
+ if queue is not None

slowed-for-ever: a publisher waits for a subscriber that never gets on
- if behind and now_ms < slowed.until_ms and
+ if behind and

one-of-a-group: one member that is behind slows publishers though another is not
- if all(queues) else []
+ if any(queues) else []
""",
    tests=("tests/broker/mqtt/test_slowing.py", "tests/broker/mqtt/test_limits.py"),
)

NARROWED = [
    *part(
        "broker/mqtt/routing/router.py",
        """
denied-delivered: what is denied goes to who has a wildcard
- elif subscribed.outgoing.receives(topic):
+ elif subscribed.outgoing.client_id:
""",
        tests=("tests/broker/mqtt/test_narrowing.py",),
    ),
    *part(
        "broker/mqtt/sessions/client_queue.py",
        """
denied-retained: what is denied comes where it is retained
- if not self.receives(message.topic):
+ if not message.topic:
""",
        tests=("tests/broker/mqtt/test_narrowing.py",),
    ),
    *part(
        "broker/mqtt/routing/shared_groups.py",
        """
denied-shared: one of a group gets what is denied to it
- if not outgoing.receives(message.topic):
+ if not message.topic:
""",
        tests=("tests/broker/mqtt/test_narrowing.py",),
    ),
]

ALIASES = [
    *part(
        "broker/mqtt/routing/message.py",
        """
alias-unsent: a message that is never sent sets an alias
- if not is_set and len(data) <= size_max:
+ if not is_set:

alias-beyond: more aliases are set than the client takes
- len(self._by_topic) + 1 if len(self._by_topic) < self._count_max else 0
+ len(self._by_topic) + 1 if len(self._by_topic) <= self._count_max else 0
""",
        tests=("tests/broker/mqtt/test_aliases.py",),
    ),
    *part(
        "broker/mqtt/sessions/handshake.py",
        """
keep-alive-of-none: a client without a keep-alive is not told one
- 0 < connect.keep_alive_s <= keep_alive_s
+ connect.keep_alive_s <= keep_alive_s
""",
        tests=("tests/broker/mqtt/test_aliases.py",),
    ),
]

QUOTAS = [
    *part(
        "broker/rights/quotas.py",
        """
quota-edge: one more than the quota is let in
- if count + amount > count_max:
-                     return f"the user
+ if count + amount > count_max + 1:
+                     return f"the user

quota-not-given-back: what another has written still counts for who wrote before
- self.unretain(topic)
-             self._retained[topic] = holder
+ self._retained[topic] = holder
""",
        tests=("tests/broker/mqtt/test_quotas.py",),
    ),
    *part(
        "broker/mqtt/sessions/departures.py",
        """
ended-still-counted: the subscriptions of a session that is over still count
- hub.quotas.give("subscriptions", session.holder, len(session.subscriptions))
+ hub.quotas.give("subscriptions", session.holder, 0)
""",
        tests=("tests/broker/mqtt/test_quotas.py",),
    ),
]

RIGHTS = part(
    "broker/rights/topics.py",
    r"""
wider-than-allowed: `#` is allowed where `+` is
- if other == "#" or level not in
+ if level not in

name-as-wildcard: a client identifier of `#` stands for all
- for character in "/+#")
+ for character in "/+")

system-topics: `#` allows what begins with `$`
- if wanted[0].startswith("$") and pattern[0] in {"+", "#"}:
+ if wanted[0].startswith("$") and pattern[0] == "+":
""",
    tests=("tests/broker/rights/test_topics.py", "tests/broker/rights/test_judge.py"),
)

TABLE = [
    *(WIRE + DECODE + ENCODE + CODEC + TOPICS),
    *(OUTGOING + ROOM + ROUTER + TIMERS + SUBSCRIBING),
    *(KEEPING + KEPT + WRITING + RESTORING + WAITING + SLOWING + SOCKETS + RIGHTS),
    *(NARROWED + ALIASES + QUOTAS),
]
