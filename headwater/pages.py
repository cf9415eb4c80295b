"""The documents that are written from tables in code: `python -m headwater.pages`.

Owns the list of these documents. Must not know their content. Invariant: a test compares each with
what is written here, so none can fall behind its table.
"""

import importlib
from pathlib import Path

# Path below docs/ -> the module and function that return the whole text.
PAGES = {
    "configuration.md": ("broker.config.show", "page"),
    "errors.md": ("headwater.errors", "page"),
    "metrics.md": ("broker.metrics.page", "page"),
    "mqtt-conformance.md": ("tests.conformance.page", "page"),
}


def text_of(name: str) -> str:
    """The text of one of the documents."""
    module, function = PAGES[name]
    written: str = getattr(importlib.import_module(module), function)()
    return written


def main() -> None:
    """Writes all of them below docs/ of the current directory."""
    for name in PAGES:
        Path("docs", name).write_text(text_of(name), encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
