"""The tree itself is tested: sizes, layers, names, blobs and what documents promise.

Each check is a function from a source text to findings, so that a planted violation can show that
the check is able to fail.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("language", "planner", "broker", "simulation", "server", "headwater")

# Beside the packages; a scratch file that slipped into a commit shows here.
AT_THE_ROOT = {*PACKAGES, "bench", "deploy", "docs", "examples", "tests"} | {
    *(".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md"),
    *("pyproject.toml", "uv.lock"),
}

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
BLOB_BYTES_MAX = 200 * 1024

LARGE_BLOBS = {
    "uv.lock": "every wheel of every platform with its digest; written by uv, never by hand",
}

BANNED_WORDS = re.compile(r"^(rules?|quer(y|ies)|workers?|messagebus|fragments?)$")
BANNED_IN_PROSE = re.compile(
    r"\b(rules?|quer(?:y|ies)|workers?|message[- ]bus|fragments?)\b", re.IGNORECASE
)
# Sentences that may use a banned word, because it names another's thing and not one of ours.
ALLOWED_PROSE = (
    re.compile(
        r"query (string|parameter)s?", re.IGNORECASE
    ),  # HTTP's own word for what follows the `?`
    re.compile(r"(cascading|ruff|lint) rules?", re.IGNORECASE),  # other tools' own words
)
# (path, name) -> reason: names that a foreign interface fixes.
ALLOWED_NAMES: dict[tuple[str, str], str] = {}

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
CORE_LAZY = {"networkx", "numpy"}
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


# --- the checks -------------------------------------------------------------------------------


def long_functions(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{node.name} has {lines} lines")
    return found


def bound_names(tree: ast.AST) -> Iterator[str]:
    """The names that a text gives, not those of others that it uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def words_of(name: str) -> list[str]:
    """`QueryIndex`, `query_index` and `QUERYIndex` all hold the word `query`."""
    parted = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3_\2\4", name)
    return [word for word in parted.lower().split("_") if word]


def banned_names(text: str, name: str = "") -> list[str]:
    found = []
    for bound in bound_names(ast.parse(text)):
        words = words_of(bound)
        pairs = ["".join(pair) for pair in pairwise(words)]
        if any(BANNED_WORDS.match(w) for w in words + pairs) and (name, bound) not in ALLOWED_NAMES:
            found.append(bound)
    return found


def banned_prose(text: str) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    for allowed in ALLOWED_PROSE:
        prose = allowed.sub(" ", prose)
    return BANNED_IN_PROSE.findall(prose)


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
            elif top == "broker" and not f"{module}.".startswith("broker.core."):
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
def test_a_module_is_short_opens_with_its_purpose_and_has_short_functions(name: str) -> None:
    text = source(name)
    assert len(text.splitlines()) <= MODULE_LINES_MAX
    assert ast.get_docstring(ast.parse(text)), "no docstring says what it owns"
    assert long_functions(text) == []


@pytest.mark.parametrize("name", modules(*PACKAGES, "bench", "tests"))
def test_names_come_from_the_glossary(name: str) -> None:
    assert banned_names(source(name), name) == []
    assert banned_names(f"{Path(name).stem.replace('-', '_')} = 0") == []


@pytest.mark.parametrize("name", [n for n in tracked() if n.endswith(".md")])
def test_documents_use_the_words_of_the_glossary(name: str) -> None:
    assert banned_prose(source(name)) == []


@pytest.mark.parametrize("name", [n for n in modules("broker") if n.startswith("broker/core/")])
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


def test_planted_violations_are_found() -> None:
    body = "    x = 1\n"
    assert long_functions("def f():\n" + body * 60) == ["f has 61 lines"]
    assert long_functions("def f():\n" + body * 59) == []
    assert banned_names("class QueryIndex: pass") == ["QueryIndex"]
    assert banned_names("def f(worker_count): self.message_bus = 1") == [
        "worker_count",
        "message_bus",
    ]
    assert banned_names("from urllib.parse import urlsplit\nx = urlsplit(u).query") == []
    assert banned_names("schedule_ruler = 1") == []
    assert banned_prose("Each rule runs. See `rule`, and the query string.") == ["rule"]


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from os import path",
        "import asyncio.events",
        "import lark",
        "import numpy as np",
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
    assert impure("def f():\n    import numpy as np\n    import networkx") == []
    assert impure("def handle(self, message, now): return self.open(now)") == []


def test_planted_machine_paths_are_found() -> None:
    for path in ["work/x", "root/.cache", "tmp/a", "home/someone/x"]:
        assert betrayed_machine(f"see /{path} there") != []
    assert betrayed_machine("https://" + "pypi" + ".org/simple") != []
    assert betrayed_machine("topic headwater/tmp/a, building/home/x, /var/lib/headwater") == []
