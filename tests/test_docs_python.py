"""Every block of Python in the documents runs, and its assertions hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = [
    (page.name, page.read_text(encoding="utf-8").count("\n", 0, found.start()) + 1, found[1])
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for found in re.finditer(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
]


@pytest.mark.parametrize(("page", "line", "code"), BLOCKS, ids=[f"{p}:{n}" for p, n, _ in BLOCKS])
def test_a_block_of_python_runs(page: str, line: int, code: str) -> None:
    exec(compile("\n" * line + code, page, "exec"), {"__name__": "document"})


def test_there_are_blocks() -> None:
    assert BLOCKS
