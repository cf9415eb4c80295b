"""The passes are compiled where that can be, and where it cannot all is Python, and is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from errno import EROFS
from functools import partial
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from broker.engine import native

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("broker", "engine", "native")
needs_compiler = pytest.mark.skipif(native.passes is None, reason="the passes are not compiled")


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


@pytest.mark.long
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


@pytest.mark.long
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
def test_where_nothing_can_be_written_all_is_python(compiling, tmp_path, monkeypatch):
    """Also where what is left of other sources cannot be taken away."""
    made, _ = compiling()
    (tmp_path / FOLDER / "slots.c").write_text("#error broken\n")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert "broken" in compiling()[1]
    assert made.exists()
    shutil.copy(ROOT / FOLDER / "slots.c", tmp_path / FOLDER)
    with (tmp_path / FOLDER / "slots.c").open("a") as source:
        source.write("\n")
    monkeypatch.setattr(Path, "replace", refuse)
    found, said = compiling()
    assert found is None
    assert said.startswith("could not compile the passes, so Python alone")
    assert "Read-only" in said


@needs_compiler
def test_a_compiler_that_cannot_be_run_is_none(compiling, tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_bytes(b"\x7fELF of another machine")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    found, said = compiling()
    assert found is None
    assert said.startswith("could not compile the passes, so Python alone")


@needs_compiler
def test_a_module_of_other_sources_is_not_used(compiling, tmp_path):
    """As it lies there after a checkout of another version; a wheel has no sources."""
    for package in (FOLDER.parent, FOLDER.parent.parent):
        shutil.copy(ROOT / package / "__init__.py", tmp_path / package)
    compiling()
    script = "from broker.engine import native; print(native.passes is not None)"

    def used() -> str:
        said = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, text=True)
        return said.strip()

    assert used() == "True"
    source, header = tmp_path / FOLDER / "slots.c", tmp_path / FOLDER / "passes.h"
    text = source.read_text()
    source.write_text(text + "\n")
    assert used() == "False"
    source.write_text(text)
    assert used() == "True"
    header.rename(header.with_name("other.h"))
    assert used() == "False"
    for path in (tmp_path / FOLDER).glob("*.[ch]"):
        path.unlink()
    assert used() == "True"


def test_a_module_that_does_not_say_its_sources_is_not_used():
    folder = str(ROOT / FOLDER)
    assert not native.of_sources(ModuleType("_passes"), folder)


@pytest.mark.skipif(
    bool(os.environ.get("HEADWATER_PURE_PYTHON")), reason="Python alone is asked for"
)
def test_the_module_is_of_these_sources():
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (ROOT / FOLDER / f"_passes{suffix}").exists():
        pytest.skip("the passes are not compiled")
    assert native.passes is not None, "run make setup"
    sources = sorted((ROOT / FOLDER).glob("*.[ch]"))
    text = b"".join(path.read_bytes() for path in sources)
    assert sha256(text).hexdigest() == native.passes.SOURCES, "run make setup"
    assert [path.name for path in sources] == native.passes.FILES.split()
