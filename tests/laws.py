"""The laws of the house: what each counts, and which lists say what does not obey yet.

Owns the checks over the whole tree; each is a function from parsed modules to `{key: figure}`. Must
not know which violations are tolerated: `laws.toml` lists those with their figure, and
`tests/test_tree.py` compares. Invariant: a list only shrinks. `python -m tests.laws` lowers the
figures of the lists to what is measured and removes what obeys by now; it never adds.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LISTS = Path(__file__).with_name("laws.toml")
PACKAGES = ("language", "planner", "broker", "simulation", "server", "headwater")

OBJECT_LINES_MAX = 400
OBJECT_METHODS_MAX = 30
INHERITANCE_MAX = 2
FOLDER_FILES_MAX = 16
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
ESSAY_LINES_MIN = 5
CLOSED_SET_KEYS_MIN = 6  # fewer common keys are a coincidence
CLOSED_SET_SHARE = 0.8
TWIN_STATEMENTS_MIN = 6
COMMENTS_PER_100_LINES = 6
COINED_TERMS_MAX = 25

VAGUE = frozenset(
    [
        "one",
        "some",
        "found",
        "told",
        "said",
        "there",
        "here",
        "most",
        "at",
        "of",
        "way",
        "rest",
        "known",
    ]
)
QUESTION = re.compile(r"(what|how|whether|where|who|see)\b", re.IGNORECASE)
# `-ed` and `-ing` words that are nouns or terms of a protocol.
NOUNS = frozenset(
    [
        "binding",
        "bounding",
        "building",
        "embed",
        "feed",
        "heading",
        "listing",
        "mapping",
        "need",
        "placement",
        "planning",
        "pricing",
        "routing",
        "seed",
        "setting",
        "settings",
        "string",
        "timing",
    ]
)
COMMENTED_ROOMS = ("broker/engine/", "broker/network/", "planner/")

Figures = dict[str, int]
Modules = tuple["Module", ...]


class Module(NamedTuple):
    """A parsed file of the product; `path` is relative to the root, `name` as imports write it."""

    path: str
    name: str
    text: str
    tree: ast.Module


class Class(NamedTuple):
    """A class with the names of its bases that are ours, resolved through the imports."""

    key: str
    path: str
    node: ast.ClassDef
    bases: tuple[str, ...]

    @property
    def lines(self) -> int:
        """The lines from `class` to the end of its body."""
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1

    @property
    def methods(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions of the body, properties included."""
        return [n for n in self.node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


# --- reading ----------------------------------------------------------------------------------


def parsed(path: str, text: str) -> Module:
    """Parse `text` as the module at `path`."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Module(path, name, text, ast.parse(text))


@cache
def product() -> Modules:
    """Return every module of the product that is under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    paths = [p for p in listed if p.split("/")[0] in PACKAGES and (ROOT / p).is_file()]
    return tuple(parsed(p, (ROOT / p).read_text(encoding="utf-8")) for p in sorted(paths))


def imported(module: Module) -> dict[str, str]:
    """Return what each imported name of `module` stands for, as `package.module.name`."""
    names = {}
    for node in nodes(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


@cache
def classes(modules: Modules) -> dict[str, Class]:
    """Return the classes at module level by their full name."""
    found = {}
    for module in modules:
        names = imported(module)
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                bases = [b.value if isinstance(b, ast.Subscript) else b for b in node.bases]
                called = [b.id for b in bases if isinstance(b, ast.Name)]
                known = tuple(names.get(b, f"{module.name}.{b}") for b in called)
                key = f"{module.name}.{node.name}"
                found[key] = Class(key, module.path, node, known)
    return {
        key: item._replace(bases=tuple(b for b in item.bases if b in found))
        for key, item in found.items()
    }


def ancestry(key: str, known: dict[str, Class]) -> list[Class]:
    """Return the class `key` and all of its bases, each once."""
    seen: dict[str, Class] = {}
    ahead = [key]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen[name] = known[name]
            ahead.extend(known[name].bases)
    return list(seen.values())


def depth(key: str, known: dict[str, Class]) -> int:
    """Return how many classes of ours lie above `key`, at most."""
    return max((1 + depth(base, known) for base in known[key].bases), default=0)


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of `tree`; cached, as a walk costs more than all that is asked of it."""
    return tuple(ast.walk(tree))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Iterate over all functions of `tree`, nested ones too."""
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


# --- law 1: an object is one thing --------------------------------------------------------------


def object_lines(modules: Modules) -> Figures:
    """Count the lines of each class over all of its bases."""
    known = classes(modules)
    sums = {key: sum(c.lines for c in ancestry(key, known)) for key in known}
    return {key: lines for key, lines in sums.items() if lines > OBJECT_LINES_MAX}


def object_methods(modules: Modules) -> Figures:
    """Count the methods of each class over all of its bases."""
    known = classes(modules)
    sums = {key: sum(len(c.methods) for c in ancestry(key, known)) for key in known}
    return {key: methods for key, methods in sums.items() if methods > OBJECT_METHODS_MAX}


def inheritance(modules: Modules) -> Figures:
    """Count how many classes of ours lie above each class."""
    known = classes(modules)
    return {key: deep for key in known if (deep := depth(key, known)) > INHERITANCE_MAX}


def lone_bases(modules: Modules) -> Figures:
    """Find base classes whose only subclass is in another file."""
    known = classes(modules)
    heirs = defaultdict(list)
    for item in known.values():
        for base in item.bases:
            heirs[base].append(item)
    return {
        base: 1
        for base, items in heirs.items()
        if len(items) == 1 and items[0].path != known[base].path
    }


def _assigned(function: ast.AST) -> set[str]:
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def second_constructors(modules: Modules) -> Figures:
    """Count, for each class, attributes first assigned by a method that its constructor calls."""
    counts = {}
    for key, item in classes(modules).items():
        methods = {m.name: m for m in item.methods}
        first = methods.get("__init__")
        if first is None:
            continue
        called = {
            node.func.attr
            for node in ast.walk(first)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "self"
        }
        later = {a for name in called if name in methods for a in _assigned(methods[name])}
        if count := len(later - _assigned(first)):
            counts[key] = count
    return counts


def private_reaches(modules: Modules) -> Figures:
    """Count, for each module, uses of another object's private names."""
    counts = {}
    for module in modules:
        own = {
            node.attr if isinstance(node, ast.Attribute) else node.name
            for node in nodes(module.tree)
            if (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
            or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        reaches = [
            node
            for node in nodes(module.tree)
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and node.attr not in own | {"_replace", "_asdict", "_fields"}
            and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
        ]
        if reaches:
            counts[module.path] = len(reaches)
    return counts


# --- law 2: a folder is a room ------------------------------------------------------------------


def folder_files(modules: Modules) -> Figures:
    """Count the files of each folder."""
    counts: dict[str, int] = defaultdict(int)
    for module in modules:
        counts[str(Path(module.path).parent)] += 1
    return {folder: files for folder, files in counts.items() if files > FOLDER_FILES_MAX}


def folder_essays(modules: Modules) -> Figures:
    """Find packages whose `__init__` does not say what they own, must not know and hold."""
    missing = {}
    for module in modules:
        if module.path.endswith("/__init__.py"):
            essay = (ast.get_docstring(module.tree) or "").casefold()
            said = all(word in essay for word in ("own", "must not", "invariant"))
            if not said or len(essay.splitlines()) < ESSAY_LINES_MIN:
                missing[str(Path(module.path).parent)] = 1
    return missing


def file_lines(modules: Modules) -> Figures:
    """Count the lines of each file."""
    counts = {module.path: len(module.text.splitlines()) for module in modules}
    return {path: lines for path, lines in counts.items() if lines > FILE_LINES_MAX}


def function_lines(modules: Modules) -> Figures:
    """Count the lines of each function, its docstring left out."""
    counts = {}
    for module in modules:
        for node in functions(module.tree):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                counts[f"{module.path}:{node.name}"] = lines
    return counts


# --- law 3: one meaning, one place --------------------------------------------------------------


def shape(node: object, numbers: dict[str, int]) -> object:
    """Return `node` as nested tuples in which names of locals are numbers in their order."""
    if isinstance(node, list):
        return tuple(shape(item, numbers) for item in node)
    if isinstance(node, ast.Name):
        return numbers.setdefault(node.id, len(numbers))
    if isinstance(node, ast.AST):
        values = [getattr(node, name, None) for name in node._fields if name != "annotation"]
        return (type(node).__name__, *(shape(value, numbers) for value in values))
    return repr(node)


def twins(modules: Modules) -> Figures:
    """Find functions of one shape that stand in several places, by their places."""
    places = defaultdict(list)
    for module in modules:
        for node in functions(module.tree):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            # The lines come first: most functions are too short, and counting statements walks.
            if (node.end_lineno or 0) - node.lineno < TWIN_STATEMENTS_MIN:
                continue
            statements = sum(isinstance(n, ast.stmt) for s in body for n in ast.walk(s))
            if statements >= TWIN_STATEMENTS_MIN:
                places[shape(body, {})].append(f"{module.path}:{node.name}")
    return {" = ".join(sorted(where)): len(where) for where in places.values() if len(where) > 1}


# --- law 4: a closed set is one record table ----------------------------------------------------


def split_tables(modules: Modules) -> Figures:
    """Find tables (dictionaries of a module) of different files that have most keys in common."""
    tables = []
    for module in modules:
        for node in module.tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict):
                keys = frozenset(ast.unparse(k) for k in value.keys if k is not None)
                if len(keys) >= CLOSED_SET_KEYS_MIN:
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[union-attr]
                    tables.append((f"{module.path}:{ast.unparse(target)}", keys))
    found = {}
    for (one, its), (other, theirs) in combinations(sorted(tables, key=lambda t: t[0]), 2):
        common = len(its & theirs)
        enough = max(CLOSED_SET_KEYS_MIN, CLOSED_SET_SHARE * min(len(its), len(theirs)))
        if common >= enough and one.split(":")[0] != other.split(":")[0]:
            found[f"{one} = {other}"] = common
    return found


# --- law 5: names are the field's ---------------------------------------------------------------


def class_names(modules: Modules) -> Figures:
    """Count the public classes of one name."""
    counts: dict[str, int] = defaultdict(int)
    for item in classes(modules).values():
        if not item.node.name.startswith("_"):
            counts[item.node.name] += 1
    return {name: count for name, count in counts.items() if count > 1}


def file_names(modules: Modules) -> Figures:
    """Find files named by a gerund or a participle."""
    found = {}
    for module in modules:
        last = Path(module.path).stem.split("_")[-1]
        if re.search(r"(?:ing|ed)$", last) and last not in NOUNS:
            found[module.path] = 1
    return found


def vague_names(modules: Modules) -> Figures:
    """Count, for each file, the variables whose name does not say what the value is."""
    counts = {}
    for module in modules:
        vague = [
            node
            for node in nodes(module.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE
        ]
        if vague:
            counts[module.path] = len(vague)
    return counts


def questions(modules: Modules) -> Figures:
    """Count, for each file, docstrings of functions and classes that begin like a question."""
    counts = {}
    for module in modules:
        asked = [
            node
            for node in nodes(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and QUESTION.match(ast.get_docstring(node) or "")
        ]
        if asked:
            counts[module.path] = len(asked)
    return counts


def comments_missing(modules: Modules) -> Figures:
    """Count, for engine, network and planner, the comments that are missing to six in 100 lines."""
    counts = {}
    for room in COMMENTED_ROOMS:
        lines = [line for m in modules if m.path.startswith(room) for line in m.text.splitlines()]
        comments = sum(bool(re.search(r"(?:^|\s)# ", line)) for line in lines)
        missing = len(lines) * COMMENTS_PER_100_LINES // 100 - comments
        if missing > 0:
            counts[room] = missing
    return counts


LAWS: dict[str, Callable[[Modules], Figures]] = {
    law.__name__: law
    for law in (
        object_lines,
        object_methods,
        inheritance,
        lone_bases,
        second_constructors,
        private_reaches,
        folder_files,
        folder_essays,
        file_lines,
        function_lines,
        twins,
        split_tables,
        class_names,
        file_names,
        vague_names,
        questions,
        comments_missing,
    )
}


# --- the lists ----------------------------------------------------------------------------------


def lists(text: str) -> dict[str, Figures]:
    """Read the lists of what does not obey yet: a table for each law, a figure for each key."""
    return {law: dict(figures) for law, figures in tomllib.loads(text).items()}


def written(tolerated: dict[str, Figures]) -> str:
    """Write the lists as TOML, sorted, so that a change shows as few lines."""
    head = "# What does not obey the laws of the house yet. A list only shrinks; see laws.py.\n"
    parts = [head]
    for law, figures in tolerated.items():
        rows = "".join(f'"{key}" = {figure}\n' for key, figure in sorted(figures.items()))
        parts.append(f"\n[{law}]\n{rows}")
    return "".join(parts)


def lowered(tolerated: dict[str, Figures]) -> dict[str, Figures]:
    """Return the lists without what obeys by now, figures lowered to what is measured."""
    measured = {law: check(product()) for law, check in LAWS.items()}
    return {
        law: {
            key: min(figure, measured[law][key])
            for key, figure in tolerated.get(law, {}).items()
            if key in measured[law]
        }
        for law in LAWS
    }


if __name__ == "__main__":
    LISTS.write_text(written(lowered(lists(LISTS.read_text(encoding="utf-8")))), encoding="utf-8")
    sys.exit()
