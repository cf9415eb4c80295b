"""The engine's compiled passes, where packages are imported from an archive.

Owns their way out of it: no library can be loaded from inside. Must not know what they do.
Invariant: where it cannot be loaded, as it is of another machine or Python, the engine does without
it, and gives the same.
"""

import sys
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from tempfile import NamedTemporaryFile
from typing import Final
from zipimport import zipimporter

MODULE: Final = "broker.engine.native._passes"
FOLDER: Final = "broker/engine/native"


def load(loader: object) -> None:
    """Load them, for the engine to find when it is imported, if `loader` is that of an archive."""
    if not isinstance(loader, zipimporter) or MODULE in sys.modules:
        return
    for suffix in EXTENSION_SUFFIXES:
        with suppress(OSError, ImportError):
            library = loader.get_data(f"{loader.archive}/{FOLDER}/_passes{suffix}")
            with NamedTemporaryFile(prefix="headwater-", suffix=suffix) as file:
                file.write(library)
                file.flush()
                spec = spec_from_file_location(
                    MODULE, file.name, loader=ExtensionFileLoader(MODULE, file.name)
                )
                if spec is not None and spec.loader is not None:
                    module = module_from_spec(spec)
                    spec.loader.exec_module(module)
                    sys.modules[MODULE] = module
            return
