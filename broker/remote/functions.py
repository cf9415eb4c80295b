"""User functions of a network: given, listed and removed at any of its brokers.

Owns what is checked before a file is taken, and the collecting of who runs and calls what. Must not
know HTTP or how files travel. Invariant: a file that is refused has changed nothing anywhere; one
that is confirmed is in the journal of the broker where it was given.

The callers at other brokers are asked for, as only homes know them. A home that cannot be asked
stops nobody: what it has installed goes on with the file that it was checked with.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from broker.core.messages import FunctionsChanged
from broker.network.functions.files import (
    FILE_BYTES_MAX,
    FILES_MAX,
    NAME,
    NAME_SAYS,
    FunctionFile,
    digest_of,
)
from broker.network.functions.register import FunctionRegister, already
from broker.own_functions import FunctionsError, load_given
from broker.remote.desk import CallDesk, Reply, UnansweredError

CALLERS_MAX = 20  # that are named for one file

Answer = tuple[int, Reply]


class FunctionsState(msgspec.Struct):
    """The account of one broker: if it runs given functions, and which files it knows.

    `files` are name, counter and broker of each, `faults` why some cannot be used there, and
    `callers` the subscriptions at home there that call some, by the file's digest.
    """

    runs: bool
    files: list[tuple[str, int, str]]
    faults: dict[str, str]
    callers: dict[str, list[str]]


class FunctionsHome(Protocol):
    """The core, as far as its functions are concerned."""

    given: FunctionRegister

    def callers(self) -> dict[str, list[str]]:
        """Return the subscriptions that call functions of given files, by the file's digest."""


class FunctionsRunner(Protocol):
    """Has the core handle a message."""

    def now_ms(self) -> int:
        """Return the time by which the core goes."""

    async def running(self) -> None:
        """Return when the core may be told anything."""

    def handle(self, message: FunctionsChanged) -> None:
        """Have a message handled at once."""


class FunctionReplies(NamedTuple):
    """The accounts of other brokers, by name, and who gave none, with the reason."""

    states: dict[str, FunctionsState]
    unreached: list[dict[str, str]]


class NetworkFunctions:
    """The user functions of a network, as broker `me` sees them; `home` is its core."""

    def __init__(self, me: str, runner: FunctionsRunner, home: FunctionsHome) -> None:
        self._me = me
        self._runner = runner
        self._home = home
        self._calls: CallDesk | None = None

    def link(self, calls: CallDesk) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls = calls
        calls.answers["functions"] = self._asked_state

    # --- what is asked here --------------------------------------------------------------------

    async def give(self, name: str, data: bytes, giver: str) -> Answer:
        """Take a file, unless anything is wrong with it, and have it travel."""
        if (wrong := self._improper(name, data)) is not None:
            return wrong
        try:
            functions = await asyncio.to_thread(load_given, name, data)
        except FunctionsError as error:
            return refusal(422, str(error))
        asked = await self._ask()
        await self._runner.running()
        register = self._home.given
        before = register.file(name)
        changes = before is None or before.data != data  # else its journal record is waited for
        if changes and (wrong := self._in_the_way(name, functions, asked)) is not None:
            return wrong
        files = [self._next(name, giver, data)] if changes else []
        await self._keep(files)
        reply = {"file": name, "digest": digest_of(data), "functions": list(functions)}
        return 200, {"ok": True, **reply, "changed": changes, "unreached": asked.unreached}

    async def remove(self, name: str, giver: str) -> Answer:
        """Take a file away everywhere, unless a subscription calls a function of it."""
        asked = await self._ask()
        await self._runner.running()
        before = self._home.given.file(name)
        if before is None or not before.data:
            names = [file.name for file in self._home.given.files() if file.data]
            listed = ", ".join(f"`{each}`" for each in names) or "none"
            sentence = f"no file of functions `{name[:64]}` is in force; those that are: {listed}"
            return refusal(404, sentence)
        if (wrong := self._called(before, asked)) is not None:
            return wrong
        await self._keep([self._next(name, giver)])
        return 200, {"ok": True, "file": name, "unreached": asked.unreached}

    async def listing(self) -> Reply:
        """Return all files in force, and what each broker makes of them."""
        asked = await self._ask()
        states = {self._me: self._state(), **asked.states}
        files = [file for file in self._home.given.files() if file.data]
        ranks = {(file.name, *file.rank) for file in files}
        return {
            "functions": [
                {
                    "file": file.name,
                    "digest": file.digest,
                    "functions": self._home.given.functions_in(file.digest),
                    "giver": file.giver,
                    "broker": file.broker,
                    "since": file.since,
                    "size_bytes": len(file.data),
                    "callers": _callers(file.digest, states),
                }
                for file in files
            ],
            "brokers": [
                {
                    "broker": name,
                    "runs": state.runs,
                    "lacks": sorted({rank[0] for rank in ranks.difference(state.files)}),
                    "faults": state.faults,
                }
                for name, state in states.items()
            ],
            "unreached": asked.unreached,
        }

    def status(self) -> Mapping[str, Any]:
        """Return in short what is in force here and what cannot be used."""
        register = self._home.given
        names = {file.name: file.digest for file in register.files() if file.data}
        return {"runs": register.runs, "files": names, "faults": dict(register.faults)}

    # --- what is checked -----------------------------------------------------------------------

    def _improper(self, name: str, data: bytes) -> Answer | None:
        """Return the refusal of what no file may be; None where it may."""
        if not self._home.given.runs:
            sentence = "this broker does not run what is given to the network; set "
            sentence += "broker.run_given_functions = true here, or give the file to one that does"
            return refusal(409, sentence)
        if NAME.fullmatch(name) is None:
            return refusal(422, f"`{name[:64]}` is no name of a file of functions: {NAME_SAYS}")
        if len(data) > FILE_BYTES_MAX:
            return refusal(413, f"a file of functions has at most {FILE_BYTES_MAX} bytes")
        return None

    def _in_the_way(
        self, name: str, functions: Collection[str], asked: FunctionReplies
    ) -> Answer | None:
        """Return the refusal where something stands in the way of a file; None where nothing."""
        register = self._home.given
        for each in functions:
            if each in register.configured:
                return refusal(409, already(each, ""))
        files = [file for file in register.files() if file.data]
        for file in files:
            taken = [each for each in register.functions_in(file.digest) if each in functions]
            if taken and file.name != name:
                return refusal(409, already(taken[0], file.name))
            if file.name == name:
                return self._called(file, asked)
        if len(files) >= FILES_MAX:
            sentence = f"{FILES_MAX} files of functions are in force, which is the most; remove one"
            return refusal(409, sentence)
        return None

    def _called(self, file: FunctionFile, asked: FunctionReplies) -> Answer | None:
        """Return the refusal where subscriptions call functions of a file."""
        callers = _callers(file.digest, {self._me: self._state(), **asked.states})
        if not callers:
            return None
        names = ", ".join(f"`{each}`" for each in callers[:CALLERS_MAX])
        sentence = f"functions of the file `{file.name}` are called by {names}; cancel that first, "
        return refusal(409, sentence + "or give the functions other names in another file")

    def _next(self, name: str, giver: str, data: bytes = b"") -> FunctionFile:
        """Return the file that takes the place of all of its name that are known here."""
        counter = max([file.counter for file in self._home.given.files()], default=0) + 1
        return FunctionFile(name, counter, self._me, giver, self._runner.now_ms(), data)

    async def _keep(self, files: Iterable[FunctionFile]) -> None:
        """Have the core take files in; returns once the journal has them."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._runner.handle(FunctionsChanged(tuple(files), future))
        await future

    # --- other brokers -------------------------------------------------------------------------

    def _state(self) -> FunctionsState:
        register = self._home.given
        files = [(file.name, *file.rank) for file in register.files()]
        callers = {key: each[:CALLERS_MAX] for key, each in self._home.callers().items()}
        return FunctionsState(register.runs, files, register.faults, callers)

    async def _asked_state(self, _question: Mapping[str, Any]) -> Reply:
        return msgspec.structs.asdict(self._state())

    async def _ask(self) -> FunctionReplies:
        """Ask all other brokers."""
        others = [] if self._calls is None else self._calls.others()
        replies = await asyncio.gather(*[self._state_of(name) for name in others])
        asked = FunctionReplies({}, [])
        for name, reply in zip(others, replies, strict=True):
            if isinstance(reply, FunctionsState):
                asked.states[name] = reply
            else:
                asked.unreached.append({"broker": name, "reason": reply})
        return asked

    async def _state_of(self, broker: str) -> FunctionsState | str:
        assert self._calls is not None
        try:
            return msgspec.convert(await self._calls.read(broker, "functions"), FunctionsState)
        except UnansweredError as error:
            return str(error)
        except msgspec.ValidationError:
            return "it does not say what functions it has; is its version older?"


def refusal(status: int, sentence: str) -> Answer:
    """Return a refusal with one sentence."""
    return status, {"ok": False, "errors": [{"message": sentence}]}


def _callers(digest: str, states: Mapping[str, FunctionsState]) -> list[str]:
    """Return the subscriptions that call functions of a file, each with its home."""
    return [
        f"{name} at {broker}"
        for broker, state in states.items()
        for name in state.callers.get(digest, ())
    ]
