"""Words: which are reserved, which are keywords, how any name can be written."""

import re

import pytest

from language import check_text, format_text, lexicon
from language.reading.parser import parser
from language.reading.syntax_errors import _TERMINALS
from tests.language.marked import assert_errors

KEYWORD = re.compile(r"[A-Z]+")


def words_of_the_grammar():
    """Terminal → the words that it stands for."""
    found = {}
    for terminal in parser().terminals:
        pattern = terminal.pattern.value
        words = re.fullmatch(r"\(?(?:\?:)?([a-z|]+)\)?(?:\\b|\(\?!.*\))", pattern)
        if words is not None:
            found[terminal.name] = words[1].split("|")
    return found


def test_reserved_are_the_words_that_can_stand_where_a_name_can():
    """Read off the parser's tables: where a keyword and a name are both possible, it wins."""
    table = parser().parser.parser._parse_table.states
    words = words_of_the_grammar()
    reserved = {
        word
        for actions in table.values()
        if "NAME" in actions
        for terminal in actions
        for word in words.get(terminal, [])
    }
    assert reserved | {"group"} == lexicon.RESERVED


def test_keywords_are_the_grammars_other_words():
    words = {word for found in words_of_the_grammar().values() for word in found}
    # `max` and `nearest` begin what only they can begin, so that nobody can mistake them.
    assert words - {"max", "nearest"} == lexicon.KEYWORDS | lexicon.RESERVED - {"group"} | {"group"}


def test_every_terminal_has_a_name_for_people():
    named = {*_TERMINALS, *words_of_the_grammar(), "SKIP"}
    assert {terminal.name for terminal in parser().terminals} == named


@pytest.mark.parametrize("word", sorted(lexicon.RESERVED - {"group"}))
def test_a_reserved_word_is_a_name_in_backticks_alone(word):
    assert_errors(f"event «HW210»{word}(x: int)\nevent E(«HW210»{word}: int)")
    good = f"event `{word}`(`{word}`: bool)\nsubscription S from u to a\n"
    good += f"detect `{word}`(`{word}`) as `{word}` where `{word}`.`{word}`\n"
    good += f"assign `{word}` = `{word}`.`{word}`\nconsuming `{word}`\ngroup by `{word}`\n"
    assert_errors(good)
    assert check_text(format_text(good)).ok


@pytest.mark.parametrize("word", sorted(lexicon.KEYWORDS))
def test_a_keyword_is_a_name_without_backticks(word):
    """It can name a type, an attribute, an alias, a definition and what is assigned."""
    text = f"event {word}({word}: bool)\ndefine E({word})\n  detect {word} as {word}\n"
    text += f"  assign {word} = {word}.{word}\n  group by {word}\n"
    text += f"subscription {word} from {word} to {word}\ndetect E({word}) as {word}\n"
    assert_errors(text)
    assert check_text(format_text(text)).ok


def test_group_names_the_key_and_nothing_else():
    assert_errors("event «HW218»`group`(x: int)\nevent E(`group`: int)")
    assert_errors("event E(x: int)\nsubscription S from u to a\ndetect E as «HW218»`group`")


@pytest.mark.parametrize("name", ["soil-moisture", "two words", "9lives", "a b-c d", "über", "_"])
def test_names_with_blanks_and_hyphens_stand_in_backticks(name):
    text = f"event `{name}`(`{name}`: int)\nset `{name}` = {{1}}\n"
    text += f"define `{name} too`(`{name}`)\n  detect `{name}`(`{name}` in `{name}`) as `{name}`\n"
    text += f"  assign `{name}` = `{name}`.`{name}`\n  group by `{name}`\n"
    text += f"subscription S from u to a\ndetect `{name} too` as x where x.`{name}` > 1\n"
    assert_errors(text)
    formatted = format_text(text)
    assert format_text(formatted) == formatted
    assert check_text(formatted).demand().graph == check_text(text).demand().graph


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a  b", "a-", "-a", "a/b", "a.b", "a+b", "a\tb", 'a"b', "a--b"]
)
def test_other_names_are_impossible(name):
    assert_errors(f"event «HW106»`{name}`(x: int)")


def test_a_keyword_ends_where_a_word_ends():
    assert_errors("event A(x: int)\nevent andB()\nsubscription S from u to a\ndetect A and andB")
    assert_errors("event lastA()\nevent notx(first_x: bool, truex: bool)\nsubscription S from u "
                  "to a\ndetect lastA and notx(first_x and truex)")  # fmt: skip
