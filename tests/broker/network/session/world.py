"""Brokers' links in virtual time: connections that chop, delay and are cut.

A connection is a pair of byte pipes. Bytes on one never reorder, are never lost while it stands,
and may arrive cut anywhere and any time later; a cut loses what is under way, and each end hears of
it when it does.
"""

import random

from broker.network.session.limits import make_link_limits
from broker.network.session.links import Links
from broker.network.session.told import (
    Close,
    Closed,
    Congested,
    Delivered,
    Down,
    NameInUse,
    Opened,
    Received,
    Refused,
    Up,
    Woken,
    Write,
)


class Pipe:
    """One direction of a connection: bytes on their way to `to`."""

    def __init__(self, to, connection):
        self.to = to
        self.connection = connection
        self.bytes = bytearray()
        self.ended = False  # closed behind the bytes


class World:
    """Brokers by name; everything happens when `draw` says so."""

    def __init__(self, seed, names=("a", "b"), secret=b"", **limits):
        self.draw = random.Random(seed)
        self.now = 0
        self.limits = make_link_limits(**limits)
        self.secret = secret
        self.epochs = dict.fromkeys(names, 1)
        self.links = {name: self.made(name) for name in names}
        self.pipes = []
        self.ends = {}  # (name, connection) -> the pipe that leads away
        self.next_connection = 0
        self.log = {name: [] for name in names}  # what the upper layers heard, in order

    def made(self, name):
        return Links(name, self.epochs[name], self.limits, self.secret)

    def restart(self, name):
        """The process is killed and started: it knows nothing, its sockets are gone."""
        for end, connection in list(self.ends):
            if end == name:
                self._lose(name, connection)
        self.epochs[name] += 1
        self.links[name] = self.made(name)
        self.log[name].append(("restarted",))

    def dial(self, dialler, listener):
        self.next_connection += 1
        here = self.next_connection
        self.next_connection += 1
        there = self.next_connection
        to, back = Pipe(listener, there), Pipe(dialler, here)
        self.pipes += [to, back]
        self.ends[dialler, here], self.ends[listener, there] = to, back
        nonce = self.draw.randbytes(16)
        self.tell(dialler, Opened(here, nonce, dialled=True, expected=listener))
        self.tell(listener, Opened(there, self.draw.randbytes(16)))
        return here

    def cut(self, name, connection):
        """This end is gone at once; what it had written may still come, as far as it does."""
        self._lose(name, connection)
        self.tell(name, Closed(connection))

    def _lose(self, name, connection):
        pipe = self.ends.pop((name, connection))
        del pipe.bytes[self.draw.randint(0, len(pipe.bytes)) :]
        pipe.ended = True

    def tell(self, name, told):
        self.perform(name, self.links[name].handle(told, self.now))

    def perform(self, name, effects):
        for effect in effects:
            if isinstance(effect, Write):
                pipe = self.ends.get((name, effect.connection))
                if pipe is not None and not pipe.ended:
                    pipe.bytes += effect.data
            elif isinstance(effect, Close):
                pipe = self.ends.pop((name, effect.connection), None)
                if pipe is not None:
                    pipe.ended = True
                self.log[name].append(("close", effect.reason, effect.fault))
            elif isinstance(effect, Delivered):
                for message in effect.messages:
                    self.log[name].append(("message", effect.peer, effect.control, message))
            elif isinstance(effect, Up):
                self.log[name].append(("up", effect.peer, effect.fresh, effect.epoch))
            elif isinstance(effect, Down):
                self.log[name].append(("down", effect.peer, effect.lost))
            elif isinstance(effect, Refused):
                self.log[name].append(("refused", effect.why, effect.messages))
            elif isinstance(effect, NameInUse):
                self.log[name].append(("in_use", effect.peer))
            else:
                assert isinstance(effect, Congested)
                self.log[name].append(("congested", effect.on))

    def step(self, whole=False):
        """Some bytes arrive somewhere; whether there were any."""
        ready = [one for one in self.pipes if one.bytes or one.ended]
        if not ready:
            return False
        pipe = self.draw.choice(ready)
        if pipe.bytes:
            many = len(pipe.bytes) if whole else self.draw.choice([1, 3, 17, len(pipe.bytes)])
            data = bytes(pipe.bytes[:many])
            del pipe.bytes[:many]
            if (pipe.to, pipe.connection) in self.ends:
                self.tell(pipe.to, Received(pipe.connection, data))
        else:
            self.pipes.remove(pipe)
            if self.ends.pop((pipe.to, pipe.connection), None) is not None:
                self.tell(pipe.to, Closed(pipe.connection))
        return True

    def deliver(self, pipe, behind=False):
        """What is in a pipe arrives; `behind`: but for the last frame, where there are several."""
        data = bytes(pipe.bytes)
        if behind:
            sizes, at = [], 0
            while at < len(data):
                sizes.append(at)
                at += 4 + int.from_bytes(data[at : at + 4], "big")
            data = data[: sizes[1]] if len(sizes) > 1 else data
        if data:
            del pipe.bytes[: len(data)]
            self.tell(pipe.to, Received(pipe.connection, data))

    def settle(self):
        """Everything under way arrives, and what is due soon is done."""
        for _ in range(100_000):
            if not self.step(whole=True) and not self.soon(50):
                return
        raise AssertionError("it does not come to rest")

    def soon(self, within_ms):
        """Go to the next waking of anybody, if it is near; whether there was one."""
        due = [d for one in self.links.values() if (d := one.next_wake()) is not None]
        if not due or min(due) > self.now + within_ms:
            return False
        self.pass_ms(max(0, min(due) - self.now))
        return True

    def pass_ms(self, many):
        self.now += many
        for name, one in self.links.items():
            due = one.next_wake()
            if due is not None and due <= self.now:
                self.tell(name, Woken())

    def heard(self, name, control=False):
        return [e[3] for e in self.log[name] if e[0] == "message" and e[2] == control]

    def said(self, name, kind):
        return [e for e in self.log[name] if e[0] == kind]
