"""Whether a broker knows all that may come before it keeps something back from a neighbour.

Owns which origins have answered whom in a session, and who is waited for. Must not know events or
claims. Invariant: where `certain_after` gives a time, whatever can still come beyond that neighbour
and ends after it comes through this broker, or comes from an origin of which this broker hears,
too.

An event is kept back because its partner has not come. That may have three other reasons: this
broker began later than the partner passed (or filtered otherwise then), the partner is at an origin
that is away, or it goes another way. For the first, an origin tells with each answer how late an
event may end that it has admitted so far, and a host the same of what it has; whatever could be
partner of something as old is not kept back. For the second, hosts tell whom they wait for and
everyone remembers whom they saw go. What goes another way is no partner that must be found, as an
operator says (`Key.optional`); where that changes, nothing is certain until all have answered anew.

An operator that a neighbour adds makes nothing uncertain that others of it ask for: what has passed
here was looked at for those. So what is certain of these *settled* operators stays, and that of the
*fresh* ones is learnt beside it, from questions that were asked behind them. Nor does a question of
one more host unsettle anything: whatever that host needs of before is in its answer.

Where somebody in another direction asks for the same, its partners have come here for as long as
that is certain. So what passed before the answer is known as well, *since* then: a task that moves
has no more events travel from where its way leaves that of before. That counts as long as nothing
is missed, and no origin comes or goes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from broker.network.frames.frames import Offered, Reoffer


class Certainty:
    """Decide whether a broker knows all that may come before it holds an event back."""

    def __init__(self) -> None:
        self.absent: dict[str, dict[str, dict[str, None]]] = {}  # by neighbour, host: for whom
        self._answered: dict[str, dict[str, int]] = {}  # by neighbour, origin
        self._fresh: dict[str, dict[str, int]] = {}  # the same behind fresh operators
        self._settled: dict[str, None] = {}  # neighbours toward whom it was certain last
        # Since when partners come here anyhow, by neighbour; of what is asked first, and afresh.
        self._since: dict[str, int] = {}
        self._fresh_since: dict[str, int] = {}
        self._open: dict[str, dict[tuple[str, str], tuple[int, int | None]]] = {}
        self._quiet: dict[str, dict[tuple[str, str], tuple[int, int | None]]] = {}
        self._missing: dict[str, tuple[str, ...]] = {}  # who went, with their types
        # By neighbour and host: the origins of which it needs something that passes here.
        self._needed: dict[str, dict[str, dict[str, None]]] = {}

    def left(self, neighbour: str) -> None:
        """All that a neighbour said is forgotten."""
        for known in (self.absent, self._answered, self._open, self._quiet, self._needed):
            known.pop(neighbour, None)
        self._fresh.pop(neighbour, None)
        self._settled.pop(neighbour, None)
        self._since.pop(neighbour, None)
        self._fresh_since.pop(neighbour, None)

    def here(self, origin: str) -> None:
        """There is a way to an origin. What happened to it meanwhile only hosts know."""
        if self._missing.pop(origin, None) is not None:
            self._answered.clear()
            self._unsettle()

    def gone(
        self, origin: str, types: tuple[str, ...], hosts: Iterable[tuple[str, Iterable[str]]]
    ) -> None:
        """The way to an origin is no more, of which these beyond neighbours needed something."""
        if types:
            self._missing[origin] = types
            self.distrust()
        for neighbour, names in hosts:
            for host in names:
                self.absent.setdefault(neighbour, {}).setdefault(host, {})[origin] = None
        self._unanswer(origin)
        for asked in [*self._open.values(), *self._quiet.values()]:
            for key in [key for key in asked if origin in key]:
                del asked[key]
        for said in (*self.absent.values(), *self._needed.values()):
            said.pop(origin, None)  # as a host it says anew whom it waits for

    def forget(self, broker: str) -> None:
        """Nobody waits for a broker any more."""
        self._missing.pop(broker, None)
        for known in (*self.absent.values(), *self._needed.values()):
            for names in known.values():
                names.pop(broker, None)
        for neighbour, needed in self._needed.items():
            for host in [host for host, origins in needed.items() if not origins]:
                del needed[host]  # it needs nothing that passes here any more, see `asked`
                self.absent.get(neighbour, {}).pop(host, None)

    def _unanswer(self, origin: str) -> None:
        """An origin has to answer anew, whoever it has answered."""
        for answered in [*self._answered.values(), *self._fresh.values()]:
            if answered.pop(origin, None) is not None:
                self._settled.clear()

    def _unsettle(self) -> None:
        """Nothing is certain that was."""
        for answered in self._fresh.values():
            answered.clear()
        self._settled.clear()

    def distrust(self) -> None:
        """Something may have passed that did not come here, whoever asks for it."""
        self._since.clear()
        self._fresh_since.clear()

    def since(self, neighbour: str, *, settled: bool = False) -> int | None:
        """Return since when partners of what a neighbour asks for come here anyhow, until answers.

        `settled`: of what it asks for besides what is certain.
        """
        return (self._fresh_since if settled else self._since).get(neighbour)

    def changed(self, neighbour: str, *, settled: bool = False, since: int | None = None) -> None:
        """A neighbour asks for something else than before; `settled`: besides what is certain.

        `since`: partners of all of that come here anyhow since then.
        """
        if settled:
            self._fresh[neighbour] = {}
        else:
            self._answered.pop(neighbour, None)
            self._fresh.pop(neighbour, None)
            self._settled.pop(neighbour, None)
            self._fresh_since.pop(neighbour, None)
        kept = self._fresh_since if settled else self._since
        kept.pop(neighbour, None)
        if since is not None:
            kept[neighbour] = since
        self._quiet.pop(neighbour, None)
        asked = self._open.get(neighbour, {})
        for key, (serial, _) in asked.items():
            asked[key] = (serial, None)  # this answer will not tell

    def settle(self, neighbour: str) -> None:
        """Take what is certain of the fresh operators of a neighbour to hold of all of them."""
        answered = self._answered.setdefault(neighbour, {})
        self._fresh_since.pop(neighbour, None)
        for origin, newest in self._fresh.pop(neighbour, {}).items():
            answered[origin] = max(answered.get(origin, newest), newest)

    def missed(self, origin: str) -> None:
        """Something of an origin did not come here."""
        self.distrust()
        self._unanswer(origin)
        for asked in self._quiet.values():
            for key in [key for key in asked if key[1] == origin]:
                del asked[key]

    def asked(self, neighbour: str, one: Reoffer, *, reachable: bool) -> None:
        """A question of a host beyond a neighbour."""
        absent = dict.fromkeys(name for name in one.absent if name != one.origin)
        key = (one.host, one.origin)
        if not reachable:
            self._settled.pop(neighbour, None)
        if one.quiet and one.types and reachable:
            self._quiet.setdefault(neighbour, {})[key] = (one.serial, one.newest)
        elif one.types and reachable:
            self._open.setdefault(neighbour, {})[key] = (one.serial, one.newest)
        else:
            self._open.get(neighbour, {}).pop(key, None)
            if one.types:
                absent[one.origin] = None
        self._waits(neighbour, one, absent)

    def _waits(self, neighbour: str, one: Reoffer, absent: dict[str, None]) -> None:
        """A host waits for these in vain; that of one is told here for which nothing passes here.

        It would not say so again when they have answered.
        """
        needed = self._needed.setdefault(neighbour, {}).setdefault(one.host, {})
        if one.types:
            needed[one.origin] = None
        else:
            needed.pop(one.origin, None)
        if needed:
            self.absent.setdefault(neighbour, {})[one.host] = absent
        else:
            del self._needed[neighbour][one.host]
            self.absent.get(neighbour, {}).pop(one.host, None)

    def answers(self, neighbour: str, one: Offered) -> None:
        """An answer to a host beyond a neighbour."""
        key = (one.host, one.what.origin)
        for asked in (self._open.get(neighbour, {}), self._quiet.get(neighbour, {})):
            serial, newest = asked.get(key, (None, None))
            if serial != one.serial or not one.what.whole:
                continue
            del asked[key]
            self.absent.get(neighbour, {}).get(one.host, {}).pop(one.what.origin, None)
            if newest is not None and one.newest is not None:
                self._answers(neighbour, one.what.origin, max(newest, one.newest))

    def _answers(self, neighbour: str, origin: str, newest: int) -> None:
        answered = self._answered.setdefault(neighbour, {})
        before = min(newest, self._since.get(neighbour, newest))
        if neighbour not in self._settled:
            answered[origin] = max(answered.get(origin, before), before)
        else:
            answered.setdefault(origin, before)
        fresh = self._fresh.get(neighbour)
        if fresh is not None:
            before = min(newest, self._fresh_since.get(neighbour, newest))
            fresh[origin] = max(fresh.get(origin, before), before)

    def certain_after(
        self,
        neighbour: str,
        types: Iterable[str],
        origins: Mapping[str, Iterable[str]],
        reachable: Container[str],
    ) -> int | None:
        """Return the time behind which what is known beyond the neighbour is known here, too.

        `types` are those that must find each other, `origins` who is on this side, with what they
        send. None: nothing is certain. It holds for what fresh operators do not ask for.
        """
        is_settled = neighbour in self._settled and not self._is_away(neighbour, reachable)
        after = None
        if is_settled or not self._waits_for_any(neighbour):
            after = self._after(neighbour, self._answered, types, origins)
        if after is None:
            self._settled.pop(neighbour, None)
        else:
            self._settled[neighbour] = None
            self._since.pop(neighbour, None)  # it holds of those who have answered
        return after

    def fresh_after(
        self, neighbour: str, types: Iterable[str], origins: Mapping[str, Iterable[str]]
    ) -> int | None:
        """Return the same for what fresh operators ask for, of which `types` are."""
        if self._waits_for_any(neighbour):
            return None
        return self._after(neighbour, self._fresh, types, origins)

    def _waits_for_any(self, neighbour: str) -> bool:
        """Tell whether a host there has not been answered, by whomever it asks."""
        return bool(self._open.get(neighbour)) or any(self.absent.get(neighbour, {}).values())

    def _is_away(self, neighbour: str, reachable: Container[str]) -> bool:
        """Tell whether one that hosts there wait for is away, and does not only take its time."""
        absent = self.absent.get(neighbour, {}).values()
        return any(name not in reachable for names in absent for name in names)

    def _after(
        self,
        neighbour: str,
        answers: Mapping[str, dict[str, int]],
        types: Iterable[str],
        origins: Mapping[str, Iterable[str]],
    ) -> int | None:
        wanted = set(types)
        if any(not wanted.isdisjoint(sent) for sent in self._missing.values()):
            return None
        answered = answers.get(neighbour, {})
        needed = [name for name, sent in origins.items() if not wanted.isdisjoint(sent)]
        if not needed or any(name not in answered for name in needed):
            return None
        return max(answered.values())

    def may_ask(self, neighbour: str, reachable: Iterable[str]) -> bool:
        """Tell whether more questions of hosts there may make it certain: not while one is away."""
        names = {name for known in self.absent.get(neighbour, {}).values() for name in known}
        return not self._open.get(neighbour) and names <= set(reachable)
