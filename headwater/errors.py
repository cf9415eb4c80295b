"""Every error that a text or a request can get: the language's, and a running broker's.

Owns what the broker's refusals mean, and joins both tables. Must not hold a sentence that either
table has. Invariant: each code of both can be explained and stands on the page `docs/errors.md`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.core.refusals import TABLE as REFUSED
from language import explain as of_language
from language.messages import TABLE


class Meaning(NamedTuple):
    """The title of a refusal, and when it comes."""

    title: str
    when: str


REFUSALS: Final[dict[str, Meaning]] = {
    "HW501": Meaning(
        "seq too low",
        "A subscription of this name and subscriber is installed already, with another text. A"
        " higher `seq` replaces it; the same text again changes nothing.",
    ),
    "HW502": Meaning(
        "another's subscription",
        "A subscription is replaced and cancelled only by its subscriber (the name after `from`)"
        " or by the client that submitted it; what a user submitted who had logged in, only by one"
        " who has.",
    ),
    "HW503": Meaning(
        "in conflict with what is installed",
        "The text is free of errors, but cannot stand beside what other texts have installed: the"
        " same event type with other attributes, for example.",
    ),
    "HW504": Meaning(
        "a limit is reached",
        "The broker would hold more subscriptions, tasks or state than its configuration allows.",
    ),
    "HW505": Meaning(
        "no such subscription",
        "What should be cancelled is not installed under this name for this client.",
    ),
    "HW506": Meaning(
        "several subscriptions of that name",
        "The client has submitted subscriptions of one name for several subscribers, so that the"
        " name alone does not say which is meant.",
    ),
    "HW507": Meaning(
        "no text", "A submission or a cancellation is a text in UTF-8, and this payload is not."
    ),
    "HW508": Meaning(
        "too many requests",
        "Requests of this client came faster than they are answered, and the waiting ones are"
        " bounded in number.",
    ),
    "HW509": Meaning(
        "a defect of the broker",
        "The broker met an error of its own on this request. Nothing was changed, and everything"
        " else runs on.",
    ),
    "HW510": Meaning(
        "not suspended",
        "Only a subscription that was suspended, as one step of it would have taken too much work,"
        " can be resumed.",
    ),
    "HW511": Meaning(
        "no limit by its text",
        "The broker takes no text whose tasks hold more the longer they run, up to"
        " `limits.occurrences_held_max`, of a user whose quota does not say `unbounded = true`; of"
        " who has no name it takes none where `limits.unbounded_allowed` is 0."
        " `headwater check --bounds` tells what each task holds at most.",
    ),
    "HW512": Meaning(
        "not granted",
        "The rights of whoever submits do not cover what the text says: the name behind `from`, the"
        " actor behind `to`, or a type that it reads, by a definition as well. Of a subscription"
        " that ran before: the rights were changed, and it was stopped.",
    ),
    "HW513": Meaning(
        "an answer elsewhere",
        "The answer to a request goes to a topic that the asker may subscribe to, and the response"
        " topic named here is none.",
    ),
    "HW514": Meaning(
        "beyond a quota",
        "A user may have so many subscriptions installed at a time, as `contents` under"
        " [quotas.default] or [quotas.users.NAME] of the rights file says.",
    ),
    "HW515": Meaning(
        "several homes",
        "Subscriptions of this name are at home at several brokers of the network, and the request"
        " does not say which of them is meant. Nothing was changed.",
    ),
    "HW516": Meaning(
        "a broker that cannot be asked",
        "A request for a whole network needs the word of another broker, and no way leads there, it"
        " is not known, or it did not reply in time. Nothing was changed.",
    ),
    "HW517": Meaning(
        "not confirmed",
        "The home of a subscription was asked to end or to resume it, and did not reply in time. It"
        " replies once its journal holds the change; so either the request or the reply was lost.",
    ),
    "HW518": Meaning(
        "no copy of a home",
        "A broker takes over a home of which it has a copy, as its stand-in. Neither this one nor"
        " another that can be reached has one. Nothing was changed.",
    ),
    "HW519": Meaning(
        "a home that can be reached",
        "A home is taken over because it is lost. There is a way to this one. Nothing was changed.",
    ),
    "HW520": Meaning(
        "a home that takes itself over",
        "The broker that was asked to take over is the home itself. Nothing was changed.",
    ),
    "HW521": Meaning(
        "a later copy of a home",
        "The broker that was asked has no copy of the home, or one from before another became its"
        " stand-in. Nothing was changed.",
    ),
    "HW522": Meaning(
        "a home whose lease has not lapsed",
        "A home with `links.stand_in_lease_ms` gives out results for as long as it may count on its"
        " lease, also where nobody can reach it; taken over earlier, two would."
        " Nothing was changed.",
    ),
}


def titles() -> dict[str, str]:
    """The title of each code, in order."""
    by_code = {entry.code: entry.title for entry in TABLE.values()}
    by_code.update((code, meaning.title) for code, meaning in REFUSALS.items())
    return dict(sorted(by_code.items()))


def explain(code: str) -> str:
    """Explain an error code; raises LanguageError for an unknown one."""
    wanted = code.strip().upper()
    if wanted not in REFUSALS:
        return of_language.explain(code)
    meaning, sentence = REFUSALS[wanted], REFUSED[wanted]
    parts = [f"{wanted}: {meaning.title}", meaning.when, *_sentences(wanted), sentence.hint]
    return "\n\n".join(parts) + "\n"


def for_programs(code: str) -> dict[str, object]:
    """Explain an error code as data; the code must be one that there is."""
    wanted = code.strip().upper()
    if wanted in REFUSALS:
        title, when = REFUSALS[wanted]
        message, hint = REFUSED[wanted]
        help_ = f"{when} {of_language.capital(hint)}."
        return {"code": wanted, "title": title, "message": message, "help": help_, "examples": []}
    entry = TABLE[wanted]
    examples = [
        {"text": example.text, "line": example.line, "column": example.column}
        for example in entry.examples
    ]
    return {
        "code": wanted,
        "title": entry.title,
        "message": entry.message,
        "help": entry.help,
        "examples": examples,
    }


def page() -> str:
    """The page `docs/errors.md`."""
    parts = [of_language.page(), "## HW5xx: What a running broker refuses\n"]
    parts.append(
        "These come in the answer to a request, after the text was found to be free of errors."
        " Nothing is\ninstalled or cancelled then. A command shows them without a place where there"
        " is none in the text.\n"
    )
    for code, meaning in REFUSALS.items():
        section = [f"### {code}: {meaning.title}\n", f"{meaning.when}\n"]
        section += [f"Message: {sentence}.\n" for sentence in _sentences(code)]
        section.append(f"{of_language.capital(REFUSED[code].hint)}.\n")
        parts.append("\n".join(section))
    return "\n".join(parts)


def _sentences(code: str) -> list[str]:
    """The message of a refusal, unless it only repeats what the cause says."""
    message = REFUSED[code].message
    return [] if message == "{found}" else [message]
