"""Functions of one's own, read from a Python file that whoever runs Headwater names or gives.

Owns the reading of that file. Must not know what the functions are for. Invariant: nothing is run
but what a command's option or a broker's configuration names, or what was given to a network whose
brokers are configured to run that; no text that is submitted reaches it.
"""

from __future__ import annotations

import sys
import traceback
from functools import lru_cache
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from threading import Lock

from broker.engine.event.own import Function
from broker.network.functions.files import FILES_MAX, digest_of
from language.functions import AGGREGATES, SCALARS

MODULE = "headwater_own_functions"
LOADED_MAX = 2 * FILES_MAX  # given files that are not run again when they are looked at again

_running = Lock()  # one file at a time: each is the module of that name meanwhile


class FunctionsError(Exception):
    """The file cannot be used; the sentence says why."""


def load_functions(path: str) -> dict[str, Function]:
    """The functions and aggregates that stand in the file under a name; none of an empty path.

    A name with an underscore before it is the file's own. Raises FunctionsError.
    """
    if not path:
        return {}
    if not Path(path).is_file():
        raise FunctionsError(f"{path}: there is no such file of functions")
    spec = spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise FunctionsError(f"{path}: not a Python file, whose name ends in .py")
    return _functions_of(spec, path)


class _GivenSource(SourceLoader):
    """A file that is in memory alone."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._data = data

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002  # as the base class has it
        """Return the name that errors are told with."""
        return self._path

    def get_data(self, path: str | bytes) -> bytes:  # noqa: ARG002  # as the base class has it
        """Return the contents."""
        return self._data


@lru_cache(LOADED_MAX)
def load_given(name: str, data: bytes) -> dict[str, Function]:
    """Return the functions and aggregates of a file that was given to a network.

    The version of each holds the digest of the file, as two files of one name may be under way at
    a time. Raises FunctionsError.
    """
    path = f"{name}.py"
    spec = spec_from_loader(MODULE, _GivenSource(path, data))
    assert spec is not None
    functions = _functions_of(spec, path)
    taken = [each for each in functions if each in SCALARS or each in AGGREGATES]
    if taken:
        raise FunctionsError(f"{path}: `{taken[0]}` is a function of the language; rename it")
    for function in functions.values():
        function.version = f"{function.version}@{digest_of(data)}"
    return functions


def _functions_of(spec: ModuleSpec, path: str) -> dict[str, Function]:
    """Run a file and return its functions. Raises FunctionsError."""
    with _running:
        return _run(spec, path)


def _run(spec: ModuleSpec, path: str) -> dict[str, Function]:
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module  # as dataclasses in it ask for
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise FunctionsError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a file does when run
        raise FunctionsError(f"{path}:{_line(error, path)}: {_told(error)}") from None
    finally:
        if before is None:
            del sys.modules[MODULE]
        else:
            sys.modules[MODULE] = before
    functions = {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, Function) and not name.startswith("_")
    }
    if not functions:
        raise FunctionsError(
            f"{path}: no functions; each is a name for a headwater.Function or headwater.Aggregate"
        )
    return functions


def _line(error: BaseException, path: str) -> int:
    """The last line of the file itself on the way to the error."""
    lines = [
        frame.lineno or 1
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == Path(path)
    ]
    return lines[-1] if lines else 1


def _told(error: BaseException) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
