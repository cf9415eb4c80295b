"""The user functions of one broker: its configured ones, and those of the files in force.

Owns which file is in force under a name, which functions texts may call, and why a file cannot be
used here. Must not know how a file is run, nor texts beyond the names that they call. Invariant:
what is in force follows from the set of files alone; a file is used as a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from broker.network.functions.files import NAMES_MAX, FunctionFile

Loader: TypeAlias = Callable[[str, bytes], Mapping[str, Any]]
"""Returns the functions of a file by its name and contents. Raises with a sentence."""


class FunctionRegister:
    """The functions of one broker; without `load` files are kept for others, and none is run."""

    def __init__(self, configured: Mapping[str, Any], load: Loader | None = None) -> None:
        self.configured = configured
        self.in_force: Mapping[str, Any] = configured
        self.faults: dict[str, str] = {}  # by file: why it cannot be used here
        self.fresh: dict[str, None] = {}  # files that neighbours have not been told of
        self._load = load
        self._files: dict[str, FunctionFile] = {}
        self._replaced: dict[str, FunctionFile] = {}  # by digest: what texts still call
        self._loaded: dict[str, Mapping[str, Any]] = {}  # by digest
        self._digests: dict[str, str] = {}  # by function, of those that files in force bring

    @property
    def runs(self) -> bool:
        """Return if this broker runs what is given to the network."""
        return self._load is not None

    def files(self) -> list[FunctionFile]:
        """Return all files and removals, by name."""
        return [self._files[name] for name in sorted(self._files)]

    def file(self, name: str) -> FunctionFile | None:
        """Return the file of a name, or its removal; None where there never was one."""
        return self._files.get(name)

    def functions_in(self, digest: str) -> list[str]:
        """Return the names of a file's functions; none where it is not run here."""
        return list(self._loaded.get(digest, ()))

    def later(self, files: Iterable[FunctionFile]) -> list[FunctionFile]:
        """Return those that are to take the place of what is here."""
        return [
            file
            for file in files
            if file.name not in self._files or file.rank > self._files[file.name].rank
        ]

    def change(self, files: Iterable[FunctionFile], called: Collection[str]) -> Mapping[str, Any]:
        """Take in files; returns what is in force then. `called` are digests that texts need."""
        for file in self.later(files):
            # A text may have been checked with the file that goes.
            before = self._files.get(file.name)
            if before is not None and before.data:
                self._replaced[before.digest] = before
            self._files[file.name] = file
            self.fresh[file.name] = None
        self._let_go()
        self._replaced = {
            digest: file for digest, file in self._replaced.items() if digest in called
        }
        return self._read()

    def _let_go(self) -> None:
        """Forget the oldest removals, where there are too many names."""
        # A broker that was away for all of a thousand names brings a removed file back; then it is
        # to be seen in the list, and is removed again.
        removed = sorted([file for file in self._files.values() if not file.data], key=_age)
        for file in removed[: max(0, len(self._files) - NAMES_MAX)]:
            del self._files[file.name]

    def _read(self) -> Mapping[str, Any]:
        """Work out what is in force."""
        # By name of the file, not by rank: the same everywhere, and a new file never takes the
        # names of one that texts call already unless its own name comes first.
        usable = dict(self.configured)
        self.faults, self._digests, owners = {}, {}, dict.fromkeys(self.configured, "")
        files = [file for file in self.files() if file.data]
        used = {file.digest for file in files} | self._replaced.keys()
        self._loaded = {key: value for key, value in self._loaded.items() if key in used}
        for file in files if self._load is not None else ():
            functions = self._functions_of(file)
            taken = [name for name in functions if name in owners]
            if taken:
                # Half of a file is worse than none of it: its functions may go together.
                self.faults[file.name] = already(taken[0], owners[taken[0]])
                continue
            usable |= functions
            owners |= dict.fromkeys(functions, file.name)
            self._digests |= dict.fromkeys(functions, file.digest)
        self.in_force = usable
        return usable

    def _functions_of(self, file: FunctionFile) -> Mapping[str, Any]:
        """Return the functions of a file; none where it cannot be run here."""
        functions = self._loaded.get(file.digest)
        if functions is None and self._load is not None:
            try:
                functions = self._loaded[file.digest] = self._load(file.name, file.data)
            except Exception as error:  # noqa: BLE001  # a file of strangers may raise anything
                self.faults[file.name] = str(error)
        return functions or {}

    # --- what texts call -------------------------------------------------------------------

    def called(self, text: str) -> dict[str, str]:
        """Return the functions of given files that a text calls, with the digests of the files."""
        return {
            name: digest for name, digest in sorted(self._digests.items()) if _calls(text, name)
        }

    def of_text(self, digests: Mapping[str, str]) -> Mapping[str, Any]:
        """Return all functions, these as in the files that a text was checked with.

        Raises LookupError with a sentence where such a file is not here.
        """
        if all(self._digests.get(name) == digest for name, digest in digests.items()):
            return self.in_force  # the frequent case: no file was replaced since
        functions = dict(self.in_force)
        for name, digest in digests.items():
            # Of what was replaced nothing is run until a text needs it, after a start.
            replaced = self._replaced.get(digest)
            loaded = self._loaded.get(digest, {})
            if replaced is not None:
                loaded = self._functions_of(replaced)
            if name not in loaded:
                raise LookupError(
                    f"`{name}` of the file of functions {digest[:12]} is needed and cannot be run "
                    "here; does broker.run_given_functions stand in the configuration?"
                )
            functions[name] = loaded[name]
        return functions

    def versions(self, text: str, digests: Mapping[str, str]) -> dict[str, Any]:
        """Return the versions of all user functions that a text calls, as it was checked."""
        functions = self.of_text(digests)
        return {name: _version(functions[name]) for name in functions if _calls(text, name)}

    def for_versions(self, versions: Mapping[str, str]) -> FunctionRegister:
        """Return a register of what is here with these versions, for a text of another broker.

        Raises LookupError with a sentence where such a version is not here.
        """
        # A register of its own: the tasks of another broker's text pin no file here.
        functions = dict(self.in_force)
        for name, version in versions.items():
            bearers = [self.in_force, *self._loaded.values()]
            same = [each[name] for each in bearers if _version(each.get(name)) == version]
            if not same:
                own = "another version of it" if name in functions else "no such function"
                wanted = f" of version {version[:40]}" if version else ""
                raise LookupError(f"it calls the function `{name}`{wanted}, and there is {own}")
            functions[name] = same[0]
        return FunctionRegister(functions)

    # --- the state -------------------------------------------------------------------------

    def state(self) -> list[Any]:
        """Return plain data: the files, then those that were replaced."""
        return [
            [msgspec.to_builtins(file, builtin_types=(bytes,)) for file in files]
            for files in (self._files.values(), self._replaced.values())
        ]

    def restore(self, state: Iterable[Any]) -> Mapping[str, Any]:
        """Take up such a state in the place of what is here; returns what is in force then."""
        files, replaced = (msgspec.convert(rows, list[FunctionFile]) for rows in state)
        self._files = {file.name: file for file in files}
        self._replaced = {file.digest: file for file in replaced}
        return self._read()


def register_of(functions: Mapping[str, Any] | FunctionRegister | None) -> FunctionRegister:
    """Return the register, or one of these functions alone."""
    if isinstance(functions, FunctionRegister):
        return functions
    return FunctionRegister(functions or {})


def already(name: str, owner: str) -> str:
    """Return the sentence for a name that is taken; `owner` "" is the broker's configuration."""
    where = f"the file `{owner}`" if owner else "this broker's own file (broker.functions)"
    return f"a function `{name}` is in {where} already; rename one of the two"


def _calls(text: str, name: str) -> bool:
    """Return if a text may call a function; one in a comment counts, too."""
    return re.search(rf"\b{re.escape(name)}\s*\(", text) is not None


def _version(function: Any) -> str | None:
    """Return the version of a function as a task's key holds it; None of none."""
    return None if function is None else getattr(function, "version", "")


def _age(file: FunctionFile) -> tuple[int, str, str]:
    return *file.rank, file.name
