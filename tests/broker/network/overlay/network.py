"""Topologies of many brokers in virtual time, over links that keep the order and lose nothing.

As real ones do: what is told to a neighbour whose link is cut is kept, unless it is lost with a
process. Messages of different links overtake each other as the generator likes.
"""

import random
from collections import deque

from broker.network.overlay.told import (
    DiskClaimed,
    ForgetRequested,
    KnownChanged,
    LinkDown,
    LinkUp,
    Objected,
    StatesReceived,
    Tell,
    TreeChanged,
    Woken,
)
from broker.network.overlay.topology import Topology


class Network:
    def __init__(self, seed, names):
        self.draw = random.Random(seed)
        self.now = 0
        self.epochs = dict.fromkeys(names, 1)
        self.all = {name: Topology(name, 1) for name in names}
        self.queues = {}  # (from, to) -> what is under way
        self.up = {}  # (low, high) -> cost
        self.met = set()  # pairs whose sessions both processes still have
        self.told = {name: [] for name in names}

    def tell(self, name, told):
        for effect in self.all[name].handle(told, self.now):
            if isinstance(effect, Tell):
                if _pair(name, effect.to) in self.met:
                    self.queues.setdefault((name, effect.to), deque()).append(effect.data)
            else:
                assert isinstance(effect, TreeChanged | KnownChanged | Objected | DiskClaimed)
                self.told[name].append(effect)

    def connect(self, one, other, cost=1):
        pair = _pair(one, other)
        if pair in self.up:
            return
        fresh = pair not in self.met
        self.met.add(pair)
        self.up[pair] = cost
        for here, there in (pair, pair[::-1]):
            self.tell(here, LinkUp(there, fresh, cost))

    def cut(self, one, other):
        pair = _pair(one, other)
        if self.up.pop(pair, None) is not None:
            for here, there in (pair, pair[::-1]):
                self.tell(here, LinkDown(there))

    def kill(self, name):
        """The process is gone, and with it its sessions."""
        for pair in [p for p in self.up if name in p]:
            self.cut(*pair)
        for pair in [p for p in self.met if name in p]:
            self.met.discard(pair)
            for way in (pair, pair[::-1]):
                self.queues.pop(way, None)
        return self.all.pop(name).state()

    def start(self, name, kept=b""):
        self.epochs[name] += 1
        self.all[name] = Topology(name, self.epochs[name], kept=kept)

    def forget(self, at, name):
        self.tell(at, ForgetRequested(name))

    def step(self):
        ready = [way for way in self.queues if way in self.up or way[::-1] in self.up]
        if not ready:
            return False
        here, there = way = self.draw.choice(ready)
        data = self.queues[way].popleft()
        if not self.queues[way]:
            del self.queues[way]
        self.tell(there, StatesReceived(here, data))
        return True

    def pass_ms(self, many):
        self.now += many
        for name in sorted(self.all):
            due = self.all[name].wake_at
            if due is not None and due <= self.now:
                self.tell(name, Woken())

    def settle(self):
        for _ in range(1000):
            while self.step():
                pass
            due = [d for one in self.all.values() if (d := one.wake_at) is not None]
            if not due:
                return
            self.pass_ms(max(0, min(due) - self.now))
        raise AssertionError("it does not come to rest")


def _pair(one, other):
    return (min(one, other), max(one, other))
