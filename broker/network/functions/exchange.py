"""What neighbours say to each other of files of functions.

Owns these messages and the answers to them. Must not know links or sessions. Invariant: a file goes
over a link only when the other end has asked for it, and a message that brings no later file
changes nothing; so what goes round in a tree comes to rest.

At the beginning of a session each end states the ranks of all files that it knows. Who lacks one,
or has an earlier one, asks for it, and for the next one when it is there: so no more than one file
waits for a link. A change is stated in the same way as soon as the core has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from msgspec import Struct

from broker.network.functions.files import NAMES_MAX, FunctionFile, check_file
from broker.network.functions.register import FunctionRegister


class FunctionsStated(Struct, array_like=True, frozen=True, tag="functions_stated"):
    """The sender knows these files: name, counter and broker of each."""

    ranks: tuple[tuple[str, int, str], ...]


class FunctionWanted(Struct, array_like=True, frozen=True, tag="function_wanted"):
    """The sender asks for the file of this name."""

    name: str


class FunctionGiven(Struct, array_like=True, frozen=True, tag="function_given"):
    """The file that was asked for."""

    file: FunctionFile


Said: TypeAlias = FunctionsStated | FunctionWanted | FunctionGiven


class StandingSessions(Protocol):
    """Sessions with neighbours."""

    @property
    def standing(self) -> list[str]:
        """The neighbours with whom a session stands."""


class FunctionExchange:
    """Exchanges files of functions between a broker and its neighbours.

    `say` sends a message to a neighbour once the journal has what it follows from, and `keep` has
    the core take in files.
    """

    def __init__(
        self,
        register: FunctionRegister,
        say: Callable[[str, Said], None],
        keep: Callable[[tuple[FunctionFile, ...]], None],
    ) -> None:
        self._register = register
        self._say = say
        self._keep = keep
        self._wanted: dict[str, dict[str, None]] = {}  # by neighbour who takes files: names to ask
        register.fresh.clear()  # each session begins with all of them

    def begin(self, peer: str, *, takes: bool = True) -> None:
        """State all to a neighbour with whom a session stands since now, if there is anything.

        One that is no broker, or of an older version, takes nothing.
        """
        self._wanted.pop(peer, None)
        if takes:
            self._wanted[peer] = {}
            self._state(peer, [file.name for file in self._register.files()])

    def spread(self, sessions: StandingSessions) -> None:
        """State what has changed since the last time."""
        names = list(self._register.fresh)
        # Before anything is said: an answer that comes at once may bring what is fresh again.
        self._register.fresh.clear()
        for peer in sessions.standing:
            if peer in self._wanted:
                self._state(peer, names)

    def _state(self, peer: str, names: Iterable[str]) -> None:
        files = [file for name in names if (file := self._register.file(name)) is not None]
        if files:
            self._say(peer, FunctionsStated(tuple([(each.name, *each.rank) for each in files])))

    def hear(self, peer: str, message: Said) -> None:
        """Take in a neighbour's message. Raises ValueError where no broker would send it."""
        match message:
            case FunctionsStated(ranks):
                self._hear_ranks(peer, ranks)
            case FunctionWanted(name):
                if (file := self._register.file(name)) is not None:
                    self._say(peer, FunctionGiven(file))
            case FunctionGiven(file):
                check_file(file)
                if later := self._register.later([file]):
                    self._keep(tuple(later))
                self._wanted.get(peer, {}).pop(file.name, None)
                self._ask(peer)

    def _ask(self, peer: str) -> None:
        """Ask a neighbour for the next file, if any is left to ask for."""
        if wanted := self._wanted.get(peer):
            self._say(peer, FunctionWanted(next(iter(wanted))))

    def _hear_ranks(self, peer: str, ranks: tuple[tuple[str, int, str], ...]) -> None:
        if len(ranks) > 2 * NAMES_MAX:
            raise ValueError(f"{peer} states {len(ranks)} files of functions")
        stated = [FunctionFile(name, counter, broker, "", 0) for name, counter, broker in ranks]
        for file in stated:
            check_file(file)
        # Ranks alone: a broker that asked by digest would get back what it has let go of.
        later = [file.name for file in self._register.later(stated)]
        if later and peer in self._wanted:
            self._wanted[peer] |= dict.fromkeys(later)
            self._ask(peer)
