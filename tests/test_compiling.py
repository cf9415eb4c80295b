"""The passes are compiled where that can be, and where it cannot all is Python, and is said."""

from __future__ import annotations

import shutil
from functools import partial
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from broker.core import compiled

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("broker", "core", "compiled")
needs_compiler = pytest.mark.skipif(compiled.passes is None, reason="the passes are not compiled")


@pytest.fixture
def compiling(tmp_path):
    """The script that compiles, and a copy of its sources to work on."""
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    for made in tmp_path.rglob("_passes.*.so"):
        made.unlink()
    spec = spec_from_file_location("compiling", ROOT / ".ci" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return partial(module.compile_passes, tmp_path)


@needs_compiler
def test_the_passes_are_compiled_once(compiling):
    made, said = compiling()
    assert made is not None
    assert said == "compiled the passes"
    assert compiling() == (made, "the passes are compiled")
    source = made.parent / "module.c"
    source.write_text(source.read_text() + "\n")
    assert compiling() == (made, "compiled the passes")


def test_without_a_compiler_all_is_python(compiling, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert compiling() == (None, "found no C compiler: Python alone, which is slower")


@needs_compiler
def test_what_cannot_be_compiled_is_left_to_python_and_said(compiling, tmp_path, monkeypatch):
    made, _ = compiling()
    (tmp_path / FOLDER / "slots.c").write_text("#error broken\n")
    found, said = compiling()
    assert found is None
    assert said.startswith("could not compile the passes, so Python alone")
    assert "broken" in said
    assert not made.exists()
    monkeypatch.setenv("HEADWATER_PURE_PYTHON", "1")
    assert compiling() == (None, "HEADWATER_PURE_PYTHON is set: Python alone")


@needs_compiler
def test_the_module_is_of_these_sources():
    sources = sorted((ROOT / FOLDER).glob("*.[ch]"))
    text = b"".join(path.read_bytes() for path in sources)
    assert sha256(text).hexdigest() == compiled.passes.SOURCES, "run make setup"
