"""Texts to mutate, tokens to mix, and texts that are hard on a reader.

Owns the material of the tests that give the language anything at all.
"""

from pathlib import Path

from language.functions import AGGREGATES, SCALARS
from language.lexicon import (
    ATTRIBUTE_TYPES,
    COMMON_ATTRIBUTES,
    KEYWORDS,
    RESERVED,
    SHAPES,
)
from language.messages import TABLE
from language.relations import CONTEXTS
from tests.language.marked import DECLARED
from tests.language.test_whole_files import PATTERNS, SPECIFIED

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.hw"))]
SHORT = 3_000
BAD = [one.text for entry in TABLE.values() for one in entry.examples if len(one.text) < SHORT]
FILES = [
    SPECIFIED,
    *EXAMPLES,
    DECLARED + "".join(f"subscription S{n} from u to a\ndetect {p.removeprefix('detect ')}\n"
                       for n, p in enumerate(PATTERNS)),
    *BAD,
]  # fmt: skip

WORDS = [
    *sorted(KEYWORDS | RESERVED), *CONTEXTS, *ATTRIBUTE_TYPES, *SHAPES, *AGGREGATES, *SCALARS,
    *COMMON_ATTRIBUTES, "max", "nearest", "next", "one", "collect", "maybe", "drop", "srcid",
    "A", "B", "x", "t", "u", "S", "D",
]  # fmt: skip
OTHERS = [
    "`last`", "`two words`", "`", "``", "u-v/w.x", '"text"', '"', '"\\u0041"', '"\\q"', "5 s",
    "5 mins", "0 s", "40000 days", "1.5 h", "10 km", "0 m", "5", "0", "1.5", "1e9", "1e999",
    "9223372036854775808", "99999999999999999999999999", "=", "!=", "<", "<=", ">", ">=", "+", "-",
    "*", "/", "..", ".", ",", ":", "(", ")", "[", "]", "{", "}", "{3}", "+[..5 s]", "# a comment\n",
    "#", "\n", "\r\n", "\t", ";", "&&", "==", "\\", "\x00", "\ufeff", "\u2028", "\ud800", "é", "💥",
    "detect A", "group by", "event A(x: int, t: text)\n", "event B(x: int)\n",
    "subscription S from u to a\ndetect A", "define D(n) aggr every 5 s\ndetect A",
]  # fmt: skip
TOKENS = [*WORDS, *OTHERS]


def filled(piece: str, length: int) -> str:
    """The piece over and over, up to a length."""
    return (piece * (length // len(piece) + 1))[:length]


HEAD = "event A(x: int, t: text)\nevent B(x: int)\n"
WHO = "subscription S from u to a\n"


def hard(length: int) -> dict[str, str]:
    """Texts of about this length, each hard in its own way."""
    few, many = length // 100, length // 20
    texts = {
        repr(piece)[1:-1]: filled(piece, length)
        for piece in (
            " ", "\n", "\r", "#", "#\n", '"', "`", "\0", "(", ")", "[", "{", "9", "a", "\ufeff",
            "-", "\ud800", "\u2028", "💥", "event ", "event A()\n",
            "event A(x: int) ;\n", "event A(", "event `", 'event "', "define #\n", "define # ",
            "define \t", "define D() detect D\n",
            "set S = {", "subscription S from ", "subscription S from u to a detect A\n",
            "subscription S from u to a detect A then \n", "event\ndefine\nset\n", "detect\n",
            "define D(x) detect (\n", "event A()\r\n", "1 2 3\n", "x\n", "é", "\\",
        )
    }  # fmt: skip
    texts |= {
        f"clause {piece}": HEAD + WHO + "detect A" + filled(piece, length)
        for piece in (
            " then B", " or B", " within 5 s", " in box(1,1,2,2)", " spread 5 m", " and", "+", " (",
            "[recent] ", " then[", "\ndetect A", "\nassign x = (", "\nassign x = A.x", "\nat most",
            "\ngroup by x", "\nconsuming A", " where", " as a", "{3}", "\n",
        )
    }  # fmt: skip
    texts |= {
        f"value {piece}": HEAD + WHO + "detect A(x" + filled(piece, length) + " > 1)"
        for piece in (
            "+x",
            "*-x",
            " and x",
            " < x",
            " or not x",
            ", x",
            "(",
            "-",
            "[",
            ".x",
            " in {1}",
        )
    }
    texts |= {
        "prefixes": HEAD + WHO + "detect " + filled("last ", length) + "A",
        "negations": HEAD + WHO + "detect A(" + filled("not ", length) + "x > 1)",
        "parentheses": HEAD + WHO + "detect " + "(" * many + "A" + ")" * many,
        "calls": HEAD + WHO + "detect A(" + "f(" * many,
        "lookups": HEAD + WHO + "detect A(" + "T[" * many,
        "backslashes": 'set S = {"' + "\\" * length,
        "digits": HEAD + WHO + "detect A within " + "5" * length + " s",
        "decimals": HEAD + WHO + "detect A(x > 1." + "5" * length + ")",
        "exponent": HEAD + WHO + "detect A(x > 1e" + "5" * length + ")",
        "blanks in a quantity": HEAD + WHO + "detect A within 5" + " " * length + "s",
        "set": "set S = {" + filled("1, ", length) + "1}",
        "polygon": "region R = polygon(" + filled("1, ", length) + "1)",
        "attributes": f"event A({', '.join(f'x{n}: int' for n in range(many))})",
        "assigned": HEAD + WHO + "detect A\nassign " + ", ".join(f"x{n}=A.x" for n in range(many)),
        "keys": HEAD + WHO + "detect A\ngroup by " + ", ".join(f"x{n}" for n in range(many)),
        "consumed": HEAD + WHO + "detect A\nconsuming " + ", ".join(f"x{n}" for n in range(many)),
        "cases": HEAD + "define D()\n" + "".join(f"case {n}:\n detect A\n" for n in range(many)),
        "conditions": HEAD + WHO + f"detect A({filled('x > 1, ', length)}x > 1)",
        "bad conditions": HEAD + WHO + f"detect A({filled('y > t, ', length)}x > 1)",
        "unknown types": "".join(
            f"{WHO.replace('S', f'S{n}')}detect T{n}(y)\n" for n in range(few)
        ),
        "options": HEAD + WHO + "detect A then[" + filled("recent, ", length) + "recent] B",
        "definitions in a chain": "event D0()\n"
        + "".join(f"define D{n + 1}()\n detect D{n}\n" for n in range(few)),
        "definitions the other way": f"event D{few}()\n"
        + "".join(f"define D{n}()\n detect D{n + 1}\n" for n in range(few)),
        "a great circle": "".join(f"define D{n}()\n detect D{(n + 1) % few}\n" for n in range(few)),
        "many circles": "".join(
            f"define D{n}()\n detect {' or '.join(f'D{m} as a{m}' for m in range(9))}\n"
            for n in range(few // 3)
        ),
        "broken items": "".join(
            f"subscription S{n} from u to a\ndetect A(x >\n" for n in range(few)
        ),
    }
    return texts
