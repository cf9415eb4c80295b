"""Which events go in one direction: to a neighbour, or to a broker's own subscriptions.

Owns the operators of one direction by their shape, and the events that passed some key of theirs.
Must not know where operators come from or are sent to. Invariant: an event is released exactly if
it passes a key of an operator and a complete match of that operator, of events that were offered,
holds it; an event held back is released as soon as what completes the match has come.

Operators of one shape (types, which keys are optional) have slots; an event is looked up once for
each place of the shape and yields the slots whose key it passes as the bits of an integer. All
operators of a shape are then matched together by a few operations on such integers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from broker.engine.filter.cells import slots_of
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.matching.joins import Hit, Variant, complete, possible
from broker.network.routing.matching.rows import Condition, Held, RowIndex, insert, row_of
from broker.network.routing.matching.wide import WideRows

SHAPES_FEW = 16  # shapes that have places of one type before all their rows are looked up at once
VARIANTS_FEW = 2  # distances that are tried without asking first whether any can succeed

Compile = Callable[[str], Condition]


class KeptByType(Protocol):
    """Events that were kept."""

    def of_type(self, type_name: str) -> Sequence[Held]:
        """Return those of a type."""


class Role(NamedTuple):
    """A key of a shape. `silent`: its events complete matches, but are not wanted themselves."""

    type_name: str
    optional: bool  # may stay empty
    silent: bool  # its events count and do not travel


class Released(NamedTuple):
    """An event to go, and the operators that it goes for: those of `shape` set in `slots`."""

    held: Held
    shape: Shape  # where it was found
    slots: int  # bits of the operators that it completes

    @property
    def names(self) -> list[str]:
        """The operators by name."""
        return [self.shape.names[slot] for slot in slots_of(self.slots)]


class Waiting(NamedTuple):
    """An event that no complete match holds so far.

    Its partners are of `types` (one of each at least), and no further from it than `delta_t_ms`.
    Of those that are `silent` the neighbour tells that asked.
    """

    held: Held  # what stays
    delta_t_ms: int
    types: tuple[str, ...]  # of the partners that are missing
    silent: tuple[str, ...] = ()  # some of `types`

    @property
    def over_ms(self) -> int:
        """Behind this no partner begins."""
        return self.held.start + self.delta_t_ms


class Joined(NamedTuple):
    """State what operators join: how far apart at most, of which types."""

    delta_t_ms: int
    types: tuple[str, ...]  # that must find each other
    silent: tuple[str, ...] = ()  # of these, those that the neighbour tells of


class Part(NamedTuple):
    """Hold what of an operator is matched for itself.

    `keys` go with whether they are silent; `via` is the neighbour that events must come from.
    """

    keys: tuple[tuple[Key, bool], ...]
    variant: Variant | None = None  # None: a single key
    via: str | None = None


class Place:
    """One place of a shape: its rows, and the events that passed some of them by start."""

    __slots__ = ("hits", "role", "rows", "starts")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.rows = RowIndex()
        self.starts: list[int] = []
        self.hits: list[Hit] = []


class Shape:
    """Operators that have the same types and the same optional and silent keys."""

    def __init__(self, roles: tuple[Role, ...]) -> None:
        self.places = [Place(role) for role in roles]  # in the order of the roles
        self.single = len(roles) == 1  # then nothing has to be joined
        self.names: dict[int, str] = {}  # operators by slot
        self.variants: dict[Variant, int] = {}  # slots by bounds: those are searched together
        self._free: deque[tuple[int, int]] = deque()  # (slot, when it was left)
        self._next = 0

    def take_slot(self, name: str, oldest: int) -> int:
        """A slot that no event held remembers; `oldest` is the first event still held."""
        if self._free and self._free[0][1] <= oldest:
            slot, _ = self._free.popleft()
        else:
            slot = self._next
            self._next += 1
        self.names[slot] = name
        return slot

    def leave_slot(self, slot: int, newest: int) -> None:
        """Give a slot up; it is taken again when the events until now are forgotten."""
        del self.names[slot]
        self._free.append((slot, newest))


class Matcher:
    """The operators of one direction; `bit` is what marks an event as sent there.

    `name` is the neighbour's, "" that of the broker's own subscriptions.

    `each`: every operator gets its own result set, and an event is released once for each of them;
    else an event is released once.
    """

    def __init__(self, name: str, bit: int, compile_condition: Compile, *, each: bool) -> None:
        self._name = name  # a direction
        self._bit = bit  # by which an event says that it went there
        self._each = each  # every result travels by itself, as the rivals do
        self._compile = compile_condition  # of conditions in words
        self._shapes: dict[tuple[Role, ...], Shape] = {}
        self._types: dict[str, list[tuple[Shape, int]]] = {}
        self._wide: dict[str, WideRows[tuple[Shape, int]]] = {}  # of types with many shapes
        self._slots: dict[str, list[tuple[Shape, int, Variant | None]]] = {}
        self.joins = 0  # shapes in which partners are looked for
        self._count = 0  # events offered
        self._lost: int | None = None  # the last end of an event that was forgotten too early
        self._expired = 0  # of those, no longer remembered
        self._ages: deque[tuple[int, int]] = deque()  # (latest start until then, offered)
        self.waiting: list[Waiting] | None = None  # those that came and stay; None: not looked at

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def __len__(self) -> int:
        return len(self._slots)

    def add(
        self,
        operator: Operator,
        parts: list[Part],
        store: KeptByType,
        silent: KeptByType | None = None,
    ) -> list[Released]:
        """Match an operator from now on; what the events kept release for it.

        `silent` are those that may complete a match at silent keys; None: the same.
        """
        slots: list[tuple[Shape, int, Variant | None]] = []
        out: list[Released] = []
        for part in parts:
            ordered = sorted(part.keys, key=lambda pair: (_role(*pair), pair[0].name))
            shape = self._shape(tuple(_role(*pair) for pair in ordered))
            slot = shape.take_slot(operator.id, self._expired)
            for index, (key, _) in enumerate(ordered):
                condition = self._compile(key.condition) if key.condition else None
                row = row_of(key, operator.since_ms, part.via, condition)
                shape.places[index].rows.add(slot, row)
                if key.type_name in self._wide:
                    self._wide[key.type_name].add((shape, index), slot, row)
            if part.variant is not None:
                known = shape.variants.get(part.variant, 0)
                shape.variants[part.variant] = known | 1 << slot
            slots.append((shape, slot, part.variant))
            self._look_back(shape, slot, (store, silent), out)
        self._slots[operator.id] = slots
        return out

    def remove(self, name: str) -> None:
        """Match an operator no longer."""
        for shape, slot, variant in self._slots.pop(name):
            for index, place in enumerate(shape.places):
                place.rows.remove(slot)
                if place.role.type_name in self._wide:
                    self._wide[place.role.type_name].remove((shape, index), slot)
            if variant is not None:
                shape.variants[variant] &= ~(1 << slot)
                if not shape.variants[variant]:
                    del shape.variants[variant]
            shape.leave_slot(slot, self._count)
            if not shape.names:
                self._drop(shape)

    def offer(self, held: Held, keeps: bool = True) -> list[Released]:
        """Return what an event that has come releases, itself included.

        `keeps` is whether any event is kept, so that an operator to come may look back at it.
        """
        self._count += 1
        if not keeps:
            self._expired = self._count
        elif not self._ages or held.start > self._ages[-1][0]:
            self._ages.append((held.start, self._count))
        else:
            self._ages[-1] = (self._ages[-1][0], self._count)
        out: list[Released] = []
        if held.event.event_type not in self._types:
            return out
        touched: dict[int, tuple[Shape, list[Hit]]] = {}
        for shape, index, mask in self._passed(held):
            if shape.single:
                self._release(held, shape, mask, out)
                continue
            hit = Hit(held, index, mask)
            place = shape.places[index]
            insert(place.starts, place.hits, held.start, hit)
            touched.setdefault(id(shape), (shape, []))[1].append(hit)
        for shape, hits in touched.values():
            self._match(shape, hits, out)
        if touched and self.waiting is not None and not held.sent & self._bit:
            self.waiting.append(_waiting(held, list(touched.values())))
        return out

    def joined(self) -> Joined:
        """Return what is asked for only with partners: the longest δt, the types to be found."""
        longest_ms = 0
        types: dict[str, None] = {}
        silent: dict[str, None] = {}
        for shape in self._shapes.values():
            if shape.variants:
                longest_ms = max([longest_ms, *[one.delta_t_ms for one in shape.variants]])
                types |= dict.fromkeys(_demanded(shape))
                silent |= dict.fromkeys(_silent(shape))
        return Joined(longest_ms, tuple(types), tuple(silent))

    def still_waiting(self) -> dict[int, Waiting]:
        """Return what came, stays and is asked for by operators that are left.

        By identity of the event as it is held, with the partners that those operators look for.
        """
        touched: dict[int, list[tuple[Shape, list[Hit]]]] = {}
        events: dict[int, Held] = {}
        for shape in self._shapes.values():
            joining = 0
            for slots in shape.variants.values():
                joining |= slots
            for hit in [hit for place in shape.places for hit in place.hits if hit.mask & joining]:
                if not hit.held.sent & self._bit:
                    events[id(hit.held)] = hit.held
                    touched.setdefault(id(hit.held), []).append((shape, [hit]))
        return {key: _waiting(events[key], hits) for key, hits in touched.items()}

    def _passed(self, held: Held) -> list[tuple[Shape, int, int]]:
        """The places of shapes where the event passes keys, with the slots whose key it passes."""
        type_name = held.event.event_type
        wide = self._wide.get(type_name)
        if wide is not None:
            return [(shape, index, mask) for (shape, index), mask in wide.lookup(held).items()]
        return [
            (shape, index, mask)
            for shape, index in self._types[type_name]
            if (mask := shape.places[index].rows.lookup(held))
        ]

    def shed(self, before_ms: int, last_ms: int) -> list[Released]:
        """Forget the events that began before though they may still be needed; what goes for it.

        Nothing is lost: what is forgotten is released, and so is, from now on, whatever may match
        with what ended until `last_ms`, as it can no longer be seen whether it does.
        """
        out: list[Released] = []
        self._lost = last_ms if self._lost is None else max(self._lost, last_ms)
        for shape in self._shapes.values():
            for variant, slots in shape.variants.items():
                for place in shape.places:
                    reached = [
                        hit for hit in place.hits if hit.start - variant.delta_t_ms <= self._lost
                    ]
                    self._release_all(shape, reached, slots, out)
        self.expire(before_ms)
        return out

    def expire(self, before_ms: int) -> None:
        """Forget the events that began before."""
        for shape in self._shapes.values():
            for place in shape.places:
                count = bisect_left(place.starts, before_ms)
                if count:
                    del place.starts[:count], place.hits[:count]
        while self._ages and self._ages[0][0] < before_ms:
            self._expired = self._ages.popleft()[1]

    def _shape(self, roles: tuple[Role, ...]) -> Shape:
        shape = self._shapes.get(roles)
        if shape is None:
            shape = self._shapes[roles] = Shape(roles)
            self.joins += not shape.single
            for index, role in enumerate(roles):
                known = self._types.setdefault(role.type_name, [])
                known.append((shape, index))
                if len(known) > SHAPES_FEW and role.type_name not in self._wide:
                    self._widen(role.type_name, known)
        return shape

    def _widen(self, type_name: str, known: list[tuple[Shape, int]]) -> None:
        """Look up all rows of a type at once from now on."""
        wide = self._wide[type_name] = WideRows()
        for shape, index in known:
            for slot, row in shape.places[index].rows.items():
                wide.add((shape, index), slot, row)

    def _drop(self, shape: Shape) -> None:
        roles = tuple(place.role for place in shape.places)
        del self._shapes[roles]
        self.joins -= not shape.single
        for type_name in dict.fromkeys(role.type_name for role in roles):
            left = [entry for entry in self._types[type_name] if entry[0] is not shape]
            if left:
                self._types[type_name] = left
            else:
                del self._types[type_name]
                self._wide.pop(type_name, None)

    def _look_back(
        self,
        shape: Shape,
        slot: int,
        kept: tuple[KeptByType, KeptByType | None],
        out: list[Released],
    ) -> None:
        """Offer what is kept to an operator that has just come."""
        bit = 1 << slot
        found: list[Hit] = []
        store, silent = kept
        for index, place in enumerate(shape.places):
            row = place.rows.row(slot)
            known = {id(hit.held): hit for hit in place.hits}
            also = silent if place.role.silent else None
            for held in (also or store).of_type(place.role.type_name):
                if not (also or self._concerns(held)) or not row.test(held):
                    continue
                if shape.single:
                    self._release(held, shape, bit, out)
                    continue
                hit = known.get(id(held))
                if hit is None:
                    hit = Hit(held, index, bit)
                    insert(place.starts, place.hits, held.start, hit)
                else:
                    hit.mask |= bit
                found.append(hit)
        for hit in found:
            self._match(shape, [hit], out, bit)

    def _concerns(self, held: Held) -> bool:
        """Tell whether an event may go in this direction: not back where it came from."""
        return not self._name or held.via != self._name

    def _match(self, shape: Shape, hits: list[Hit], out: list[Released], only: int = -1) -> None:
        variants = list(shape.variants.items())
        if len(variants) > VARIANTS_FEW:
            only &= possible(shape.places, hits, [variant for variant, _ in variants])
        unsent = None if self._each else self._bit
        for variant, slots in variants:
            if self._lost is not None and hits[0].start - variant.delta_t_ms <= self._lost:
                self._release_all(shape, hits, slots & only, out)
            for hit, mask in complete(shape.places, hits, variant, slots & only, unsent):
                if self._each:
                    new = mask & ~hit.got
                    if new:
                        hit.got |= new
                        out.append(Released(hit.held, shape, new))
                else:
                    self._release(hit.held, shape, mask, out)

    def _release(self, held: Held, shape: Shape, mask: int, out: list[Released]) -> None:
        if not self._each:
            if held.sent & self._bit:
                return
            held.sent |= self._bit
        out.append(Released(held, shape, mask))

    def _release_all(self, shape: Shape, hits: list[Hit], slots: int, out: list[Released]) -> None:
        """Let go what is held back, whether it is in a match or not."""
        for hit in hits:
            mask = hit.mask & slots & ~hit.got
            if mask and not shape.places[hit.place].role.silent:
                hit.got |= mask if self._each else 0
                self._release(hit.held, shape, mask, out)

    def shapes(self) -> Iterator[Shape]:
        """The shapes in the order in which they came; for looking at."""
        return iter(self._shapes.values())


def _demanded(shape: Shape) -> list[str]:
    return [place.role.type_name for place in shape.places if not place.role.optional]


def _silent(shape: Shape) -> list[str]:
    return [place.role.type_name for place in shape.places if place.role.silent]


def _waiting(held: Held, touched: list[tuple[Shape, list[Hit]]]) -> Waiting:
    delta_t_ms = 0
    types: dict[str, None] = {}
    silent: dict[str, None] = {}
    for shape, hits in touched:
        mask = 0
        for hit in hits:
            mask |= hit.mask
        found = [variant.delta_t_ms for variant, slots in shape.variants.items() if slots & mask]
        delta_t_ms = max([delta_t_ms, *found])
        types |= dict.fromkeys(_demanded(shape))
        silent |= dict.fromkeys(_silent(shape))
    return Waiting(held, delta_t_ms, tuple(types), tuple(silent))


def _role(key: Key, silent: bool) -> Role:
    return Role(key.type_name, key.optional, silent)


def parts_of(operator: Operator) -> list[Part]:
    """Split an operator into what is matched: whole if it is correlated, else key by key.

    What has no bound in time is not correlated: events would have to be kept for ever.
    """
    if operator.correlated and len(operator.keys) > 1 and operator.delta_t_ms is not None:
        variant = Variant(operator.delta_t_ms, operator.delta_l, operator.strict)
        return [Part(tuple((key, key.name in operator.silent) for key in operator.keys), variant)]
    return [Part(((plain(key), False),)) for key in operator.keys]


def plain(key: Key) -> Key:
    """A key that is matched for itself is not optional."""
    if not key.optional:
        return key
    return Key(
        key.name, key.type_name, key.source, key.location, key.region, key.ranges, key.equals,
        key.condition,
    )  # fmt: skip
