"""A network as a tree of text, as a graph in DOT, and as SVG.

Owns words, places and colours. Must not know how a network is asked. Invariant: each broker and
each link stands there once; names of strangers can break neither form.
"""

import json
from collections.abc import Iterable, Sequence

from headwater.cli.network.picture import LinkFlow, NetworkPicture
from headwater.drawn import drawn

COLUMN_PX, ROW_PX, BOX_PX, HEIGHT_PX, MARGIN = 250, 62, 130, 30, 20
BLANK = "   "
FILLS = {True: ("#e6effa", "#2b5c94"), False: ("#f3f3f3", "#9a9a9a")}


def rate_text(flow: LinkFlow | None) -> str:
    """Return `35 events, 1.2/s`, the rate only where there were two looks."""
    if flow is None:
        return "not known"
    rate = f", {flow.rate:.1f}/s" if flow.per_s else ""
    return f"{flow.total} event{'' if flow.total == 1 else 's'}{rate}"


def as_tree(
    picture: NetworkPicture, flows: Sequence[LinkFlow], *, operators: bool
) -> Iterable[str]:
    """Give lines: each broker beneath the one that it is linked to, and what goes between them."""
    by_way = {(flow.sender, flow.receiver): flow for flow in flows}
    states = {link.ends: link for link in picture.links}
    rows = picture.tree()
    for number, (name, depth, parent) in enumerate(rows):
        if not parent:
            yield name + ("" if picture.reachable.get(name, True) else "  (not reachable)")
            continue
        indent = "".join(_rule(rows, number, level) for level in range(1, depth))
        is_last = _rule(rows, number, depth) == BLANK
        below = indent + _rule(rows, number, depth)
        below += "│  " if _has_children(rows, number) else "   "
        link = states[min(name, parent), max(name, parent)]
        yield f"{indent}{'└─ ' if is_last else '├─ '}{name}{_state(link.is_up, link.reason)}"
        for sender, receiver in ((name, parent), (parent, name)):
            flow = by_way.get((sender, receiver))
            yield f"{below}{sender} → {receiver}: {rate_text(flow)}"
            if operators and flow is not None:
                yield from (f"{below}  {line}" for line in operator_lines(picture, flow))
    for link in picture.links:
        if not link.in_tree:
            first, second = link.ends
            yield f"not in the tree: {first} – {second}{_state(link.is_up, link.reason)}"


def _rule(rows: Sequence[tuple[str, int, str]], number: int, level: int) -> str:
    """Return the line of a `level` beside row `number`: drawn if a broker of it follows there."""
    for _, depth, _ in rows[number + 1 :]:
        if depth <= level:
            return "│  " if depth == level else BLANK
    return BLANK


def _has_children(rows: Sequence[tuple[str, int, str]], number: int) -> bool:
    return number + 1 < len(rows) and rows[number + 1][1] > rows[number][1]


def operator_lines(picture: NetworkPicture, flow: LinkFlow) -> Iterable[str]:
    """Give a line for each operator that events travel for, and for what it covers."""
    for operator in flow.operators:
        users = picture.users(operator["id"])
        covered = picture.covered(operator["id"], flow)
        if not users and not covered:
            users = [f"tasks at {', '.join(flow.hosts) or 'brokers that were not asked'}"]
        yield f"{operator['wants']}" + (f"  for {', '.join(users)}" if users else "")
        for row in covered:
            whom = ", ".join(picture.users(row["id"]))
            yield f"  covers {row['wants']}" + (f"  for {whom}" if whom else "")


def _state(is_up: bool, reason: str) -> str:  # read beside `reason`
    return "" if is_up else f"  (link down{': ' + reason if reason else ''})"


def as_dot(picture: NetworkPicture, flows: Sequence[LinkFlow]) -> str:
    """Return a graph for Graphviz; links that are not in the tree are dashed."""
    by_way = {(flow.sender, flow.receiver): flow for flow in flows}
    lines = ["graph network {", "  node [shape=box];"]
    for name, reachable in sorted(picture.reachable.items()):
        lines.append(f"  {_quoted(name)}{'' if reachable else ' [style=dotted]'};")
    for link in picture.links:
        first, second = link.ends
        label = "\n".join(
            f"{sender} → {receiver}: {rate_text(by_way.get((sender, receiver)))}"
            for sender, receiver in (link.ends, link.ends[::-1])
        )
        style = "" if link.in_tree else ", style=dashed"
        colour = "" if link.is_up else ", color=red"
        lines.append(
            f"  {_quoted(first)} -- {_quoted(second)} [label={_quoted(label)}{style}{colour}];"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def as_svg(picture: NetworkPicture, flows: Sequence[LinkFlow]) -> str:
    """Return the tree from left to right, a broker a row; other links are curves."""
    by_way = {(flow.sender, flow.receiver): flow for flow in flows}
    rows = picture.tree()
    place = {
        name: (MARGIN + depth * COLUMN_PX, MARGIN + number * ROW_PX)
        for number, (name, depth, _) in enumerate(rows)
    }
    width = max((x for x, _ in place.values()), default=0) + BOX_PX + 2 * MARGIN + 80
    height = 2 * MARGIN + ROW_PX * len(rows)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="Verdana, DejaVu Sans, sans-serif"'
        ' font-size="12"><title>Network</title>'
    )
    parts = [head]
    for link in picture.links:
        colour = "#33475b" if link.is_up else "#c0392b"
        (x1, y1), (x2, y2) = (place[end] for end in link.ends)
        if not link.in_tree:
            right = max(x1, x2) + BOX_PX
            bend = f"C{right + 70} {y1 + 15} {right + 70} {y2 + 15}"
            parts.append(
                f'<path d="M{x1 + BOX_PX} {y1 + 15} {bend} {x2 + BOX_PX} {y2 + 15}" fill="none"'
                f' stroke="{colour}" stroke-dasharray="4 4"/>'
            )
    for name, _, parent in rows:
        if parent:
            parts += _branch(picture, place, (name, parent), by_way)
    for name, (x, y) in place.items():
        fill, stroke = FILLS[picture.reachable.get(name, True)]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{BOX_PX}" height="{HEIGHT_PX}" rx="5" fill="{fill}"'
            f' stroke="{stroke}"/><text x="{x + 10}" y="{y + 20}">{drawn(name[:18])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _branch(
    picture: NetworkPicture,
    place: dict[str, tuple[int, int]],
    ends: tuple[str, str],
    by_way: dict[tuple[str, str], LinkFlow],
) -> list[str]:
    """Draw a line from a broker's parent to it, and what went over it in both directions."""
    name, parent = ends
    (x, y), (px, py) = place[name], place[parent]
    link = next(link for link in picture.links if set(link.ends) == {name, parent})
    colour = "#33475b" if link.is_up else "#c0392b"
    parts = [
        f'<path d="M{px + 20} {py + HEIGHT_PX} V{y + 15} H{x}" fill="none" stroke="{colour}"/>'
    ]
    texts = [
        f"← {rate_text(by_way.get((name, parent)))}",
        f"→ {rate_text(by_way.get((parent, name)))}",
    ]
    for number, text in enumerate(texts):
        parts.append(
            f'<text x="{px + 26}" y="{y + 10 + 15 * number}" font-size="11">{drawn(text)}</text>'
        )
    return parts
