"""Functions of one's own, read from a Python file that whoever runs Headwater names.

Owns the reading of that file. Must not know what the functions are for. Invariant: nothing is run
but what a command's option or a broker's configuration names; no text that is submitted reaches it.
"""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from broker.core.own import Function

MODULE = "headwater_own_functions"


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
    module = module_from_spec(spec)
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module  # as dataclasses in it ask for
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise FunctionsError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except Exception as error:  # noqa: BLE001  # whatever a file does when it is run
        raise FunctionsError(f"{path}:{_line(error, path)}: {_told(error)}") from None
    finally:
        if before is None:
            del sys.modules[MODULE]
        else:
            sys.modules[MODULE] = before
    found = {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, Function) and not name.startswith("_")
    }
    if not found:
        raise FunctionsError(
            f"{path}: no functions; each is a name for a headwater.Function or headwater.Aggregate"
        )
    return found


def _line(error: Exception, path: str) -> int:
    """The last line of the file itself on the way to the error."""
    lines = [
        frame.lineno or 1
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == Path(path)
    ]
    return lines[-1] if lines else 1


def _told(error: Exception) -> str:
    said = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
