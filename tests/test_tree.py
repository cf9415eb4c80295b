"""The tree itself is tested: the laws of the house, layers, blobs and what documents promise.

Each check is a function from a source text to findings, so that a planted violation can show that
the check is able to fail.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests import laws

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = laws.PACKAGES
# What is sans-IO: it may import the standard library's pure parts and msgspec alone.
SANS_IO = ("broker/core/", "broker/engine/", "broker/network/")
SANS_IO_PACKAGES = tuple(room.replace("/", ".") for room in SANS_IO)

# Beside the packages; a scratch file that slipped into a commit shows here.
AT_THE_ROOT = {*PACKAGES, "bench", "deploy", "docs", "examples", "experiments", "tests"} | {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("pyproject.toml", "uv.lock", "docker-compose.yml", ".dockerignore"),
    "pyspark_headwater.py",  # Spark looks for its sources at the top alone
}

BLOB_BYTES_MAX = 200 * 1024

LARGE_BLOBS = {
    "uv.lock": "every wheel of every platform with its digest; written by uv, never by hand",
}

CORE_STDLIB_BANNED = {
    "asyncio": "effects are carried out around the core",
    "logging": "the core notes, the driver logs",
    "multiprocessing": "the core is one thread of thought",
    "os": "no files, no environment",
    "pathlib": "no files",
    "random": "randomness comes in as an argument",
    "secrets": "randomness comes in as an argument",
    "socket": "no sockets",
    "ssl": "no sockets",
    "subprocess": "no processes",
    "tempfile": "no files",
    "threading": "the core is one thread of thought",
    "time": "`now` comes in as an argument",
    "uuid": "ids are digests or arguments",
}
# Installed with Headwater, but slow to load: the core imports them within functions.
CORE_LAZY = {"networkx"}
CORE_CALLS_BANNED = {
    "open": "no files",
    "print": "the core notes, the driver speaks",
    "input": "the core asks nobody",
    "hash": "differs from run to run with PYTHONHASHSEED",
}
CLOCK_CALLS = {"now", "utcnow", "today"}

# Written in pieces, so that this file does not accuse itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:" + r"work|root|tmp|home/\w+|Users/\w+" + r")/[\w.]")
REGISTRY_HOST = re.compile("|".join([r"pypi\." + "org", "python" + r"hosted\.org"]))


@cache
def tracked() -> tuple[str, ...]:
    """Every path under version control that is still there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return tuple(name for name in listed.split("\0") if name and (ROOT / name).is_file())


def modules(*roots: str) -> list[str]:
    return [n for n in tracked() if n.endswith(".py") and n.split("/")[0] in roots]


def source(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def grown(earlier: dict[str, laws.Figures], later: dict[str, laws.Figures]) -> list[str]:
    """The laws whose list has more entries, or a greater sum, than it had."""
    return [
        law
        for law, figures in earlier.items()
        if len(later[law]) > len(figures) or sum(later[law].values()) > sum(figures.values())
    ]


# --- the checks -------------------------------------------------------------------------------


def impure(text: str) -> list[str]:
    """What a module of the core takes from the world outside."""
    found = []
    tree = ast.parse(text)
    for node in ast.walk(tree):
        imported: list[str] = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CORE_CALLS_BANNED:
                found.append(f"{called.id}(): {CORE_CALLS_BANNED[called.id]}")
            if isinstance(called, ast.Attribute) and called.attr in CLOCK_CALLS:
                found.append(f".{called.attr}(): `now` comes in as an argument")
        for module in imported:
            top = module.split(".")[0]
            if top in CORE_STDLIB_BANNED:
                found.append(f"{module}: {CORE_STDLIB_BANNED[top]}")
            elif top == "broker" and not f"{module}.".startswith(SANS_IO_PACKAGES):
                found.append(f"{module}: the core knows nothing of the broker around it")
            elif top in CORE_LAZY and node not in tree.body:
                continue
            elif top not in {*sys.stdlib_module_names, "msgspec", "language", "planner", "broker"}:
                found.append(f"{module}: not among what the core may import")
    return found


def betrayed_machine(text: str) -> list[str]:
    return MACHINE_PATH.findall(text) + REGISTRY_HOST.findall(text)


# --- the tree ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", modules(*PACKAGES, "bench"))
def test_a_module_opens_with_its_purpose(name: str) -> None:
    assert ast.get_docstring(ast.parse(source(name))), "no docstring says what it owns"


@pytest.mark.parametrize("law", laws.LAWS)
def test_a_law_of_the_house_is_obeyed_but_for_what_is_listed(law: str) -> None:
    """A figure may be lower than the list says; `python -m tests.laws` lowers the list."""
    tolerated = laws.lists(source("tests/laws.toml"))[law]
    found = laws.LAWS[law](laws.product())
    assert {key: n for key, n in found.items() if n > tolerated.get(key, 0)} == {}
    assert sorted(set(tolerated) - set(found)) == [], "obeys by now: python -m tests.laws"


def test_the_lists_of_what_disobeys_only_shrink() -> None:
    """Compare every version of the lists with the one before: entries and sums never rise.

    Keys may change, as files are renamed. Of a branch that was merged the outcome counts. A
    shallow clone knows fewer versions.
    """
    hashes = git("log", "--first-parent", "--format=%H", "--", "tests/laws.toml").split()
    texts = [source("tests/laws.toml"), *(git("show", f"{h}:tests/laws.toml") for h in hashes)]
    for later, earlier in pairwise(map(laws.lists, texts)):
        assert grown(earlier, later) == []


def test_at_most_so_many_words_are_our_own() -> None:
    coined = re.findall(r"^\|.*\|\s*like [^|]*, but ", source("docs/glossary.md"), re.MULTILINE)
    assert len(coined) <= laws.COINED_TERMS_MAX


@pytest.mark.parametrize("name", [n for n in modules("broker") if n.startswith(SANS_IO)])
def test_the_core_is_pure(name: str) -> None:
    assert impure(source(name)) == []


def test_only_what_a_newcomer_expects_lies_at_the_root() -> None:
    assert {name.split("/")[0] for name in tracked()} == AT_THE_ROOT


def test_no_large_blob_is_committed_without_a_reason() -> None:
    large = {n for n in tracked() if (ROOT / n).stat().st_size > BLOB_BYTES_MAX}
    assert large == set(LARGE_BLOBS)


def test_no_file_speaks_of_the_machine_it_was_written_on() -> None:
    found = {}
    for name in tracked():
        data = (ROOT / name).read_bytes()
        if name == "uv.lock" or b"\0" in data[:8192] or name.endswith(".gz"):
            continue
        if betrayed := betrayed_machine(data.decode("utf-8", "replace")):
            found[name] = betrayed
    assert found == {}


@pytest.mark.parametrize("package", ["language", "headwater", "headwater.cli"])
def test_heavy_libraries_are_imported_only_when_needed(package: str) -> None:
    """Start-up on a small machine is paid for by every command."""
    heavy = {"lark", "networkx", "numpy", "sqlalchemy", "aiohttp", "aiomqtt", "prometheus_client"}
    script = f"import {package}, sys; print(' '.join(sorted(m for m in sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert package in loaded
    assert heavy & set(loaded) == set()


def test_every_make_target_is_told_in_the_readme() -> None:
    targets = re.findall(r"^([a-z]+):.*## ", source("Makefile"), flags=re.MULTILINE)
    assert {"setup", "demo", "test", "check", "long", "bench", "docs"} <= set(targets)
    readme = source("README.md")
    assert [t for t in targets if t != "help" and f"make {t}" not in readme] == []


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.*)$", source("CHANGELOG.md"), flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions = [re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", h) for h in headings[1:]]
    assert all(versions)


# --- the checks can fail ----------------------------------------------------------------------


BODY = "    x = 1\n"
PLANTED: dict[str, dict[str, str]] = {
    "object_lines": {
        "broker/a.py": "class A:\n" + BODY * 300,
        "broker/b.py": "from broker.a import A\nclass B(A):\n" + BODY * 100,
    },
    "object_methods": {
        "broker/a.py": "class A:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(31))
    },
    "inheritance": {
        "broker/a.py": "class A: ...\nclass B(A): ...\nclass C(B): ...\nclass D(C): ...\n"
    },
    "lone_bases": {
        "broker/a.py": "class A: ...",
        "broker/b.py": "from broker.a import A\nclass B(A): ...",
    },
    "second_constructors": {
        "broker/a.py": "class A:\n  def __init__(self): self.more()\n  def more(self): self.x = 1"
    },
    "private_reaches": {"broker/a.py": "def f(other): return other._secret"},
    "folder_files": {f"broker/a{n}.py": "" for n in range(17)},
    "folder_essays": {"broker/__init__.py": '"""The broker."""'},
    "file_lines": {"broker/a.py": "x = 1\n" * 601},
    "function_lines": {"broker/a.py": "def f():\n" + BODY * 60},
    "twins": {f"broker/{n}.py": f"def f{n}({n}):\n" + f"  {n} = g({n})\n" * 6 for n in "ab"},
    "split_tables": {f"broker/{n}.py": "T = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}" for n in "ab"},
    "class_names": {f"broker/{n}.py": "class A: ..." for n in "ab"},
    "file_names": {"broker/taking.py": ""},
    "vague_names": {"broker/a.py": "one = 1"},
    "questions": {"broker/a.py": 'def f():\n  """What it does."""'},
    "comments_missing": {"broker/engine/a.py": "x = 1\n" * 100},
}
INNOCENT: dict[str, dict[str, str]] = {
    "object_lines": {"broker/a.py": "class A:\n" + BODY * 399},
    "object_methods": {
        "broker/a.py": "class A:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(30))
    },
    "inheritance": {"broker/a.py": "class A: ...\nclass B(A): ...\nclass C(B): ...\n"},
    "lone_bases": {"broker/a.py": "class A: ...\nclass B(A): ..."},
    "second_constructors": {
        "broker/a.py": "class A:\n  def __init__(self): self.x = 0; self.m()\n"
        "  def m(self): self.x = 1",
    },
    "private_reaches": {"broker/a.py": "class A:\n  def _m(self): return self._m, other._m"},
    "folder_files": {f"broker/a{n}.py": "" for n in range(16)},
    "folder_essays": {
        "broker/__init__.py": '"""The broker.\n\nOwns a.\n\nMust not know b. Invariant: c.\n\n"""'
    },
    "file_lines": {"broker/a.py": "x = 1\n" * 600},
    "function_lines": {
        "broker/a.py": 'def f():\n    """A\n    long\n    docstring.\n    """\n' + BODY * 59
    },
    "twins": {f"broker/{n}.py": f"def f({n}):\n" + f"  x = g({n}, '{n}')\n" * 6 for n in "ab"},
    "split_tables": {
        f"broker/{n}.py": f"T = {{{n}: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}}" for n in "ab"
    },
    "class_names": {f"broker/{n}.py": "class _A: ..." for n in "ab"},
    "file_names": {"broker/setting.py": "", "broker/seed.py": ""},
    "vague_names": {"broker/a.py": "event = one"},
    "questions": {"broker/a.py": 'def f():\n  """Return what it does."""'},
    "comments_missing": {"broker/engine/a.py": "x = 1\n" * 94 + "# because\n" * 6},
}


@pytest.mark.parametrize("law", laws.LAWS)
def test_a_planted_violation_of_a_law_is_found(law: str) -> None:
    check = laws.LAWS[law]
    for texts, is_found in ((PLANTED[law], True), (INNOCENT[law], False)):
        found = check(tuple(laws.parsed(path, text) for path, text in texts.items()))
        assert bool(found) is is_found


def test_lists_that_grow_are_found() -> None:
    listed = {"object_lines": {"a": 500, "b": 600}}
    assert grown(listed, {"object_lines": {"c": 500, "b": 600}}) == []  # renamed
    assert grown(listed, {"object_lines": {"a": 501, "b": 600}}) == ["object_lines"]
    assert grown(listed, {"object_lines": {"a": 1, "b": 1, "c": 1}}) == ["object_lines"]


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from os import path",
        "import asyncio.events",
        "import lark",
        "import numpy as np",
        "def f():\n    import numpy as np",
        "def f():\n    import lark",
        "from broker import config",
        "from broker.http.app import make",
        "x = datetime.now()",
        "open('f')",
        "key = hash('a')",
        "def f():\n    import random",
    ],
)
def test_planted_impurity_is_found(text: str) -> None:
    assert len(impure(text)) == 1


def test_what_the_core_may_use_is_not_accused() -> None:
    allowed = "import bisect\nimport msgspec\nfrom broker.core.x import y\nfrom language import z"
    assert impure(allowed) == []
    assert impure("def f():\n    import networkx") == []
    assert impure("def handle(self, message, now): return self.open(now)") == []


def test_planted_machine_paths_are_found() -> None:
    for path in ["work/x", "root/.cache", "tmp/a", "home/someone/x"]:
        assert betrayed_machine(f"see /{path} there") != []
    assert betrayed_machine("https://" + "pypi" + ".org/simple") != []
    assert betrayed_machine("topic headwater/tmp/a, building/home/x, /var/lib/headwater") == []
