"""From an argument list to one command, and from its outcome to an exit status.

Owns the table of commands, the options that all share and the four exit statuses. Must not know
what a command does. Invariant: whatever a user does, the answer is a sentence and a status, never
a traceback; a traceback is a bug of ours.
"""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from headwater.cli.output import CommandError, complain, print_json

GOOD = 0  # done, and nothing to complain of
PROBLEMS = 1  # done, and there is something to complain of
MISUSED = 2  # used wrongly, or the input is faulty
UNREACHABLE = 3  # the broker cannot be reached

JSON = "--json"
HELP = {"-h", "--help"}

# In the order of a first acquaintance; `a b` stands in the module `a_b`.
COMMANDS = {
    "demo": "the main job on real measurements, offline",
    "check": "find every error of specifications",
    "explain": "say what an error's code means, with examples",
    "fmt": "write specifications in their one canonical form",
    "replay": "run a specification over recorded events",
    "test": "run events with expected results, on a virtual clock",
    "simulate": "propagate subscriptions, or rehearse faults, on a described network",
    "broker": "run one broker",
    "broker install": "make a broker a service of this machine, started with it",
    "broker uninstall": "take that service away; its data stay",
    "broker rename": "give a stopped broker another name",
    "submit": "install a specification in a running broker",
    "cancel": "end a subscription, wherever in the network its home is",
    "resume": "begin a suspended subscription anew",
    "ls": "list the subscriptions of a network of brokers",
    "tail": "follow the results of a running broker",
    "plan": "find where the tasks of a network run best, or see where they run",
    "top": "watch brokers, links and tasks as they work",
    "doctor": "tell what is wrong with brokers, and what mends it",
    "topology": "draw brokers and links, and what travels over each for whom",
    "flows": "tell which events go over each link, and what was kept back and why",
    "context add": "give a network of brokers a name",
    "context ls": "list the networks that have a name",
    "context select": "choose the network that is asked where no broker is named",
    "context remove": "forget the name of a network",
    "status": "say how the brokers of a network are",
    "health": "say whether a running broker takes events; for health checks",
    "discover": "list the brokers that announce themselves on this network segment",
    "invite": "make a code by which a new broker may join the network",
    "join": "set up a new broker of a network, by a code of one of its brokers",
    "drain": "have the tasks that run at a broker go elsewhere",
    "forget": "have nobody wait any more for a broker that will not come back",
    "take-over": "have a broker take over the subscriptions of a home that is lost",
    "functions add": "give a file of user functions to a network of brokers",
    "functions ls": "list the user functions of a network, and which broker lacks what",
    "functions remove": "take a file of user functions away from a network",
    "backup": "copy what a running broker keeps to a directory",
    "restore": "put a backup in the place of a stopped broker's data directory",
    "server run": "run jobs on Spark over the results of brokers",
    "server migrate": "fill a job that means something else beside itself, then show that",
    "server mend": "fill the gaps of a history from where the results still are",
    "server compact": "merge small files of a job's folder, and take old days out of it",
    "server status": "say how far the jobs of a running server are",
    "server tables": "list the tables and views that jobs fill, and what is in them",
    "config show": "print a broker's configuration and where it comes from",
    "reload": "have a running broker take up users, rights, certificates and secrets",
    "user add": "add a user, with a password and roles, to a broker's rights file",
    "user passwd": "give a user of a rights file another password",
    "user remove": "take a user out of a rights file",
    "user list": "list the users of a rights file",
    "token add": "add a token for a program to a rights file, and show it once",
    "token ls": "list the tokens of a rights file",
    "token remove": "take a token out of a rights file",
}
ROOMS = {
    **dict.fromkeys(("user", "token", "reload"), "rights."),
    **dict.fromkeys(
        (
            "broker",
            "discover",
            "drain",
            "forget",
            "health",
            "invite",
            "join",
            "status",
            "take-over",
        ),
        "brokers.",
    ),
    "take-over": "brokers.",
    **dict.fromkeys(("backup", "restore"), "copies."),
    **dict.fromkeys(("submit", "cancel", "resume", "ls", "tail"), "subscriptions."),
    **dict.fromkeys(("check", "explain", "fmt", "replay", "test"), "specifications."),
    "functions": "functions.",
    "server": "server.",
    **dict.fromkeys(("top", "doctor", "topology", "flows", "context"), "network."),
}  # by the first word


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    status = GOOD
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + 2  # as a shell tells SIGINT; commands that end by Ctrl-C handle it themselves
    except BrokenPipeError:  # whoever read the output has seen enough
        _discard_output()
    except OSError as error:  # what a command can foresee it words itself; a full disk is not that
        _discard_output()
        if status == GOOD:
            where = f"{error.filename}: " if error.filename else ""
            reason = (error.strerror or str(error)).lower()
            complain(f"headwater: cannot go on: {where}{reason}")
            status = MISUSED
    return status


def _prepare_streams() -> None:
    """Standard streams that take whatever is printed, also where the caller has closed them."""
    nothing = Path(os.devnull)
    if sys.stdin is None:
        sys.stdin = nothing.open(encoding="utf-8")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # what goes out is lost, as was asked for
            setattr(sys, name, nothing.open("w", encoding="utf-8"))
    if isinstance(sys.stdout, TextIOWrapper):  # a character that the terminal lacks is no failure
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Keep what is still buffered from failing once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        from importlib.metadata import version

        print(f"headwater {version('headwater')}")
        return GOOD
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in HELP:
        print(_overview(COMMANDS))
        return GOOD if words else MISUSED
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return _run(name, words[length:])
    group = {name: summary for name, summary in COMMANDS.items() if name.startswith(f"{words[0]} ")}
    if group and HELP & set(words[1:]):
        print(_overview(group))
        return GOOD
    return _tell(CommandError(MISUSED, _unknown(words)), as_json=JSON in words)


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong with the arguments, which argparse would print."""

    def error(self, message: str) -> NoReturn:
        raise _MisuseError(self, message)


class _MisuseError(Exception):
    """Arguments that a command does not take."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.usage = parser.format_usage()
        self.sentence = f"{parser.prog}: error: {message}"


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command's options."""
    module = module_of(name)
    parser = _Parser(
        prog=f"headwater {name}",
        description=COMMANDS[name],
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    parser.add_argument(JSON, action="store_true", help="write JSON, for programs")
    return parser


def module_of(name: str) -> ModuleType:
    """Import the module of a command."""
    room = ROOMS.get(name.partition(" ")[0], "")
    return importlib.import_module(f"headwater.cli.{room}{re.sub('[ -]', '_', name)}")


def _run(name: str, words: list[str]) -> int:
    try:
        arguments = parser_of(name).parse_args(words)
    except SystemExit:  # argparse has printed the help
        return GOOD
    except _MisuseError as error:
        if JSON in words:
            aside = getattr(module_of(name), "ERRORS_ASIDE", False)
            return _tell(CommandError(MISUSED, str(error)), as_json=True, aside=aside)
        complain(f"{error.usage}{error.sentence}")
        return MISUSED
    run: Callable[[argparse.Namespace], int] = module_of(name).run
    try:
        return run(arguments)
    except CommandError as error:
        return _tell(error, as_json=arguments.json)


def _tell(error: CommandError, *, as_json: bool, aside: bool = False) -> int:
    """Says what is wrong, `aside` on standard error in any case; the exit status."""
    if as_json:
        print_json({"ok": False, "errors": error.errors}, sys.stderr if aside else None)
    else:
        for text in error.messages:
            complain(f"headwater: {text}")
    return error.status


def _overview(commands: Mapping[str, str]) -> str:
    width = max(len(name) for name in commands)
    lines = ["usage: headwater COMMAND …", ""]
    lines += [f"  {name:<{width}}  {summary}" for name, summary in commands.items()]
    lines += [
        "",
        "`headwater COMMAND --help` says more, with an example. Exit status: 0 good, 1 problems",
        "found, 2 used wrongly or faulty input, 3 a broker cannot be reached.",
    ]
    return "\n".join(lines)


def _unknown(words: list[str]) -> str:
    """The sentence for a command that does not exist, with the nearest that does."""
    import difflib

    longer = [name for name in COMMANDS if name.startswith(f"{words[0]} ")]
    if longer:
        return f"`{words[0]}` needs a second word: " + ", ".join(f"`{name}`" for name in longer)
    near = difflib.get_close_matches(words[0], COMMANDS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`headwater --help` lists what there is"
    return f"no command `{words[0][:60]}`; {hint}"


def entry(module: str, name: str) -> Callable[..., Any]:
    """The function that does a command's work, imported now."""
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
