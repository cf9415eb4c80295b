"""Subscriptions that are ended from other brokers, while links and processes fail.

Owns who asks whom and when, and what must hold of it. Must not know the event loop: what brokers
ask each other is that of `broker.remote.question`. Invariant: the same as of `Run`.

A client installs subscriptions at homes all over the network. Later others, each at a broker of its
own, list what a home has and have one of these ended, over links that are cut, slow or parted and
at processes that end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from broker.core.effects import Effect, Reply
from broker.network.overlay.calls import CallArrived, CallSent, OpenCalls, RemoteCall, reply_to
from broker.remote.question import EndQuestion, page_of, read_page
from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Wish
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Outcome, Run, RunFailedError, Shape

WAIT_MS = 4_000
ENDERS = 8
NAME = "Hot"
RETRIES = 3
SLOW_SYNC_MS = 6_000  # a reply that does not wait for the journal overtakes it
ENDED_SHARE = 0.6  # of homes that are asked: so many end before, or as, their journal has it
ENDED_MS_MAX = 250


class CallingPlace(Place):
    """A machine whose broker calls others, and answers them."""

    def start(self) -> None:
        """Begin a process, which knows nothing of the calls of the one before."""
        self.calls = OpenCalls(self.name, (self.connection + 1) << 20)
        super().start()

    def call(self, to: str, question: dict[str, Any], ender: Ender) -> None:
        """Have `ender` told of the reply, or that there was none."""
        process, connection = self.process, self.connection
        if process is None or to not in process.network.ways.via:
            ender.unanswered("no way")
            return
        call = self.calls.open(to, json.dumps(question).encode(), ender.turn)
        assert call is not None
        ender.open = call.number, connection
        self.hear(CallSent(call))
        self.world.after(WAIT_MS, partial(self._give_up, call, ender, connection))

    def _give_up(self, call: RemoteCall, ender: Ender, connection: int) -> None:
        if connection == self.connection:
            self.calls.drop(call)
        if ender.open == (call.number, connection):
            ender.unanswered("no reply")

    def leaves(self, effect: Effect) -> None:
        """Bring a call to its asker, anything else to where others go."""
        if isinstance(effect, CallArrived):
            # Behind what the core wanted besides, as on an event loop.
            self.world.after(0, partial(self._receive, effect.call, self.connection))
        elif isinstance(effect, Reply) and isinstance(effect.reply_to, RemoteCall):
            self.hear(CallSent(reply_to(effect.reply_to, effect.payload)))
        else:
            super().leaves(effect)

    def _receive(self, call: RemoteCall, connection: int) -> None:
        process = self.process
        if process is None or connection != self.connection:
            return
        if call.is_reply:
            turn = self.calls.close(call)
            if turn is not None:
                turn(json.loads(call.body))
            return
        question = json.loads(call.body)
        installed = process.core.core.subscriptions
        if question["verb"] == "list":
            rows = [
                {
                    "subscriber": had.subscriber,
                    "subscription": had.name,
                    "client": had.client,
                    "seq": had.seq,
                    "since": had.since,
                }
                for had in installed
            ]
            page = page_of(rows, None)
            self.hear(CallSent(reply_to(call, msgspec.json.encode(page))))
            return
        request = msgspec.convert(question, EndQuestion).request(installed, call)
        if request is None:
            self.hear(CallSent(reply_to(call, b'{"ok":false}')))
        else:
            self._guarded(lambda: process.tell(request))
            if self.world.random.random() < ENDED_SHARE:
                self.world.after(self.world.random.randint(1, ENDED_MS_MAX), self.end)


class Ender:
    """A client that has a subscription of `client` ended at its `home`, asking at `place`.

    `state` is how far that has come; `generation` is when what was ended had been installed.
    """

    def __init__(self, place: CallingPlace, home: Place, client: str) -> None:
        self.open: tuple[int, int] | None = None
        self.state: Literal["lists", "ends", "confirmed", "refused", "unknown"] = "lists"
        self.generation: tuple[int, int] | None = None
        self.ends = 0  # how often it has heard the last word
        self.client = client
        self.home = home
        self._place = place
        self._left = RETRIES

    def begin(self) -> None:
        """Ask for the list."""
        self._place.call(self.home.name, {"verb": "list"}, self)

    def turn(self, reply: dict[str, Any]) -> None:
        """Take in the reply."""
        self.open = None
        if self.state == "ends":
            self.ends += 1
            self.state = "confirmed" if reply["ok"] else "refused"
            return
        rows = [row for row in read_page(reply).rows if row["subscriber"] == self.client]
        if not rows:
            self.state = "refused"
            return
        row = rows[0]
        self.generation = row["seq"], row["since"]
        self.state = "ends"
        question = EndQuestion("cancelled", self.client, True, self.client, NAME, *self.generation)
        words = msgspec.structs.asdict(question)
        self._place.call(self.home.name, {"verb": "end", **words}, self)

    def unanswered(self, why: str) -> None:
        """There is no reply: begin once more, unless it may have been ended."""
        self.open = None
        self._left -= 1
        if self.state == "ends" and why == "no reply":
            self.ends += 1
            self.state = "unknown"
        elif self._left:
            self.state = "lists"
            self._place.world.after(WAIT_MS, self.begin)
        else:
            self.state = "unknown"


class RemoteRun(Run):
    """One run; see the module. `confirmed` counts what was ended for sure."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self._enders: list[Ender] = []
        self.confirmed = self.unknown = 0
        super().__init__(seed, shape)

    def _place(self, name: str) -> Place:
        machine = super()._place(name).machine
        slow_ms = self.world.random.choice((machine.sync_ms, SLOW_SYNC_MS))
        return CallingPlace(self.world, replace(machine, sync_ms=slow_ms))

    def _names(self) -> tuple[str, ...]:
        return super()._names()[:1]

    def _plan_askers(self) -> None:
        super()._plan_askers()
        random = self.world.random
        for number in range(ENDERS):
            client, home = f"victim-{number}", random.choice(self.places)
            place = random.choice([place for place in self.places if place is not home])
            assert isinstance(place, CallingPlace)
            self._enders.append(Ender(place, home, client))
            self._askers.append(self._submission(home, client))

    def _submission(self, home: Place, client: str) -> AskingClient:
        wish = Wish("submit", texts.text_of((NAME,), client), {NAME: 1})
        return AskingClient(home, client, [wish])  # type: ignore[arg-type]

    def _plan_faults(self, end_ms: int) -> None:
        random = self.world.random
        for ender in self._enders:
            self.world.at(random.randint(self.world.now + CALM_MS, end_ms), ender.begin)
        super()._plan_faults(end_ms)

    def _judge(  # type: ignore[override]
        self,
        places: Sequence[Place],
        *_: object,
        **__: bool,
    ) -> int:
        rows = [row for place in places for row in place.machine.outbox.rows]
        checkers.check_no_result_twice((0, row) for row in rows)
        for ender in self._enders:
            self._check(ender)
        return len(rows)

    def _check(self, ender: Ender) -> None:
        process = ender.home.process
        assert process is not None
        if ender.open is not None or ender.ends > 1 or ender.state in {"lists", "ends"}:
            raise CheckFailedError(f"a request to end {ender.client} has no end: {ender.state}")
        stands = [
            (had.seq, had.since)
            for had in process.core.core.subscriptions
            if had.subscriber == ender.client
        ]
        self.confirmed += ender.state == "confirmed"
        self.unknown += ender.state == "unknown"
        if ender.state == "confirmed" and ender.generation in stands:
            raise CheckFailedError(f"{ender.client} was ended and stands again")
        if ender.generation is None and not stands:
            raise CheckFailedError(f"{ender.client} was ended, and nobody asked for that")


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    return run_of(seed, shape)[0]


def run_of(seed: int, shape: Shape | None = None) -> tuple[Outcome, RemoteRun]:
    """The same, with the run itself."""
    running = RemoteRun(seed, shape or Shape(events=150))
    try:
        return running.run(), running
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind remote --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error
