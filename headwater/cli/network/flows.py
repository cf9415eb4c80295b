"""`headwater flows`: events over each link by type, and what was kept back and why.

Owns the command's options and output. Must not know how brokers route. Invariant: the events of a
link by type add up to those that the link counted.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from headwater.cli.network.look import add_interval, seen
from headwater.cli.network.picture import LinkFlow, NetworkPicture
from headwater.cli.output import print_json, print_table
from headwater.cli.reach import add_options, brokers_of

EXAMPLE = "  headwater flows --interval 5   # --context home asks all of its brokers"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_interval(parser)
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the flows; 1 where a broker of the context does not answer, or has no links."""
    picture, flows, status = seen(brokers_of(arguments), arguments.interval)
    if arguments.json:
        print_json(as_data(picture, flows))
        return status
    rows = [
        (flow.sender, flow.receiver, name, count, _rate(flow, name))
        for flow in flows
        for name, count in sorted(flow.events.items())
    ]
    if rows:
        print_table(("FROM", "TO", "TYPE", "EVENTS", "PER S"), rows)
    else:
        print("no event has gone over a link yet")
    waiting = [
        (flow.sender, flow.receiver, row["type"], row["events"], ", ".join(row["partners"]))
        for flow in flows
        for row in flow.waiting
    ]
    if waiting:
        print("\nkept back, until a partner comes:")
        print_table(("FROM", "TO", "TYPE", "EVENTS", "WAIT FOR"), waiting)
    for line in (*kept_back_lines(picture), *unsure_lines(flows)):
        print(line)
    return status


def kept_back_lines(picture: NetworkPicture) -> list[str]:
    """Say for each broker that kept events back what became of them."""
    lines = []
    for name, view in picture.views.items():
        kept = view["kept_back"]
        if kept["kept_back"]:
            lines.append(
                f"{name} has kept {kept['kept_back']} events back: {kept['kept_back_sent']} went"
                f" later, {kept['kept_back_let_go']} found no partner and never travelled"
            )
        if unbounded := view.get("unbounded"):
            lines.append(
                f"{name} promises nothing of how long these last, so that their partners travel at"
                f" once: {', '.join(unbounded)}; `lasts at most` in their declarations would"
            )
        if far := view.get("too_far_ms"):
            types = [f"{kind} ({apart_ms / 1_000:,.1f} s)" for kind, apart_ms in far.items()]
            lines.append(
                f"{name} needs these at once, as their partners may be further apart than"
                f" `limits.kept_back_ms_max`: {', '.join(types)}"
            )
        if not view.get("correlates", True):
            lines.append(f"{name} keeps no event back: `links.correlate` is off there")
    return lines


def unsure_lines(flows: Sequence[LinkFlow]) -> list[str]:
    """Say where nothing waits at the moment, as partners may have passed, or be away."""
    return [
        f"{flow.sender} keeps nothing back from {flow.receiver} for now: it is not sure that no"
        " partner has passed before, or is at a broker that is away"
        for flow in flows
        if flow.unsure
    ]


def _rate(flow: LinkFlow, name: str) -> str:
    return f"{flow.per_s[name]:.1f}" if name in flow.per_s else "-"


def as_data(picture: NetworkPicture, flows: list[LinkFlow]) -> dict[str, Any]:
    """Return the flows for programs."""
    return {
        "flows": [
            {
                "from": flow.sender,
                "to": flow.receiver,
                "events": flow.events,
                "per_s": {name: round(rate, 3) for name, rate in flow.per_s.items()},
                "kinds": flow.kinds,
                "waiting": flow.waiting,
                "unsure": flow.unsure,
            }
            for flow in flows
        ],
        "kept_back": {name: view["kept_back"] for name, view in picture.views.items()},
    }
