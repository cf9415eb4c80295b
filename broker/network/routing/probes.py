"""Probes: whether every broker that can be reached has heard all that was said before.

Owns the numbers of probes, who was asked in which session and who has echoed. Must not know what
others answer besides, nor who is a neighbour: whoever drives it says so each time. Invariant: the
number in `answered` ascends, and all neighbours of the moment have echoed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct, field

from broker.network.routing.wants import HostWants, Types

PLAIN_WAIT_MS = 500  # neighbours of an earlier version echo nothing: they have as long to answer


class Probe(Struct, array_like=True, frozen=True, tag="probe"):
    """A broker asks whether all beyond have heard what it said before this number.

    It wants these types; who echoes has that on its disk. None: it does not say.
    """

    broker: str  # who asks
    number: int  # of the wave; ascends at who began it
    wants: Types | None = None


class Echo(Struct, array_like=True, frozen=True, tag="echo"):
    """All brokers beyond have heard, and answered, what came before the probe of this number."""

    broker: str  # who asks
    number: int  # it stands for all before it, too


class Neighbours(Struct, frozen=True):
    """The neighbours in the tree at a moment.

    `standing` are those of `all_peers` with whom a session stands, `plain` those of these that
    know no probes.
    """

    all_peers: Sequence[str]  # in the tree
    standing: Collection[str]  # with a session
    plain: Collection[str] = ()

    def without(self, lost: Collection[str]) -> Neighbours:
        """Return the others but for these."""
        if not lost:
            return self
        return Neighbours([n for n in self.all_peers if n not in lost], self.standing, self.plain)


class _Wave(Struct):
    """One broker's probes. `number` is the last that was asked."""

    via: str  # the neighbour who asked; "": this broker
    number: int
    wants: Types | None = None
    done: int = 0  # the last that was echoed, or answered
    asked: dict[str, int] = field(default_factory=dict)  # by neighbour, in this session
    echoed: dict[str, int] = field(default_factory=dict)  # by neighbour: the last number
    asked_at: dict[str, int] = field(default_factory=dict)  # by neighbour that knows no probes


class Probes:
    """Take part in the probes of all brokers. `me` is this one's name.

    Its numbers begin behind `first`, which ascends with each process.
    """

    def __init__(self, me: str, first: int = 0) -> None:
        self._me = me
        self._own = _Wave("", first, done=first)
        self._wants: list[HostWants] = []  # of others, since somebody asked
        self._waves: dict[str, _Wave] = {}  # by the broker who asks, others' alone
        self.wake_at: int | None = None  # when time alone answers: a neighbour knows no probes
        self.is_idle = True  # nothing is under way, nor was anything heard that nobody has taken

    @property
    def answered(self) -> int:
        """The last number of this broker up to which all have echoed."""
        return self._own.done

    @property
    def pending(self) -> bool:
        """Tell whether this broker waits for an echo."""
        return self._own.done < self._own.number

    def begin(self, wants: Types | None = None) -> int:
        """Ask whether all have heard what was said until now; the number of the probe.

        `wants` are the types that this broker wants from now on; None: the same as before.
        """
        # The probe leaves with `due`, behind whatever is said until then.
        self._own.number += 1
        self.is_idle = False
        if wants is not None:
            self._own.wants = wants
        return self._own.number

    def take_wants(self) -> list[HostWants]:
        """Return what others have said that they want, since this was called last."""
        taken, self._wants = self._wants, []
        self._settle()
        return taken

    def heard(self, peer: str, probe: Probe) -> None:
        """Take a neighbour's probe."""
        # In a tree it cannot come back; one that is about to change may be none for a moment.
        if probe.broker == self._me:
            return
        wave = self._waves.get(probe.broker)
        if wave is None or wave.via != peer:
            self._waves[probe.broker] = _Wave(peer, probe.number, probe.wants)
        elif probe.number >= wave.number:
            wave.number, wave.wants = probe.number, probe.wants
        if probe.wants is not None:
            self._wants.append(HostWants(probe.broker, probe.number, probe.wants))
        self._settle()

    def echoed(self, peer: str, echo: Echo) -> None:
        """Take a neighbour's echo."""
        wave = self._own if echo.broker == self._me else self._waves.get(echo.broker)
        # What it was not asked in this session it cannot echo.
        if wave is not None and wave.asked.get(peer, 0) >= echo.number:
            wave.echoed[peer] = max(wave.echoed.get(peer, 0), echo.number)

    def left(self, peer: str) -> None:
        """Forget all that a neighbour heard and said: its session has ended."""
        for broker in [name for name, wave in self._waves.items() if wave.via == peer]:
            del self._waves[broker]
        for wave in (self._own, *self._waves.values()):
            # Also what was echoed: behind a new session others may be there.
            for by_peer in (wave.asked, wave.echoed, wave.asked_at):
                by_peer.pop(peer, None)
        self._settle()

    @property
    def busy(self) -> bool:
        """Tell whether anything is to be asked, or waited for."""
        return self._own.done < self._own.number or bool(self._waves)

    def due(
        self, peers: Neighbours, now: int, *, whole: bool = True
    ) -> Iterator[tuple[str, Probe | Echo]]:
        """Say what is due now: (neighbour, frame).

        Unless `whole` the tree is about to be another, so that nothing is answered yet.
        """
        for broker, wave in [(self._me, self._own), *self._waves.items()]:
            if wave.done == wave.number:
                continue
            others = [name for name in peers.all_peers if name != wave.via]
            for peer in others:
                if peer not in peers.standing:
                    continue
                if peer in peers.plain:
                    _pass_time(wave, peer, now)
                elif wave.asked.get(peer, 0) < wave.number:
                    wave.asked[peer] = wave.number
                    yield peer, Probe(broker, wave.number, wave.wants)
            echoed = min((wave.echoed.get(name, 0) for name in others), default=wave.number)
            # Of who has no other neighbours all is echoed.
            if echoed <= wave.done or not (whole or wave.via):
                continue
            wave.done = echoed
            if wave.via:
                yield wave.via, Echo(broker, echoed)
                if echoed == wave.number:
                    del self._waves[broker]

        self._settle()

    def _settle(self) -> None:
        self.is_idle = not (self._waves or self._wants) and self._own.done >= self._own.number
        # Echoes come in their own time, and the topology wakes by itself.
        waves = (self._own, *self._waves.values())
        times = [at_ms for wave in waves for at_ms in wave.asked_at.values()]
        self.wake_at = min(times) + PLAIN_WAIT_MS if times else None


def _pass_time(wave: _Wave, peer: str, now: int) -> None:
    """Have a neighbour that knows no probes echo when its time is over."""
    asked_at = wave.asked_at.get(peer)
    if asked_at is not None and now >= asked_at + PLAIN_WAIT_MS:
        del wave.asked_at[peer]
        wave.echoed[peer] = wave.asked[peer]
    # A later number begins its own time, as the answers to it begin later.
    if peer not in wave.asked_at and wave.asked.get(peer, 0) < wave.number:
        wave.asked[peer], wave.asked_at[peer] = wave.number, now
