"""One network, put together of what its brokers say.

Owns the putting together, of one look or of two. Must not know how it is printed. Invariant: a link
and a direction have one count, the sender's where that answered, else the receiver's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

View = Mapping[str, Any]
Counts = dict[str, int]


@dataclass(slots=True)
class LinkFlow:
    """Events over a link in one direction; `events` by type, `per_s` where there were two looks.

    `operators` are those that the events are wanted for, `hosts` the brokers that wait for them,
    `kinds` messages and bytes by what they are for. `unsure`: nothing waits for partners, as the
    sender does not know yet whether some have passed before, or are away.
    """

    sender: str
    receiver: str
    events: Counts
    per_s: dict[str, float] = field(default_factory=dict)
    operators: list[Mapping[str, Any]] = field(default_factory=list)
    waiting: list[Mapping[str, Any]] = field(default_factory=list)
    hosts: tuple[str, ...] = ()
    kinds: dict[str, Mapping[str, int]] = field(default_factory=dict)
    unsure: bool = False

    @property
    def total(self) -> int:
        """Return all events of it."""
        return sum(self.events.values())

    @property
    def rate(self) -> float:
        """Return the events a second."""
        return sum(self.per_s.values())


@dataclass(slots=True)
class NetworkLink:
    """Two brokers, in the order of their names, and what is known of the link between them."""

    ends: tuple[str, str]
    in_tree: bool
    is_up: bool
    reason: str = ""


class NetworkPicture:
    """Brokers, links and flows of the `views`, which are `GET /v1/network` of some brokers."""

    def __init__(self, views: Sequence[View]) -> None:
        self.views = {str(view["broker"]): view for view in views}
        self.reachable: dict[str, bool] = {}
        for view in views:
            for row in view["brokers"]:
                name = str(row["name"])
                self.reachable[name] = self.reachable.get(name, False) or bool(row["reachable"])
        self.links = self._links()
        self._users = self._users_of_operators()

    def _links(self) -> list[NetworkLink]:
        links: dict[tuple[str, str], NetworkLink] = {}
        for name, view in self.views.items():
            for row in view["links"]:
                ends = (str(row["a"]), str(row["b"]))
                links.setdefault(ends, NetworkLink(ends, bool(row["tree"]), is_up=True))
            for peer, link in view["neighbours"].items():
                ends = (min(name, peer), max(name, peer))
                seen = links.setdefault(ends, NetworkLink(ends, in_tree=False, is_up=False))
                if link.get("state") != "up":
                    seen.is_up, seen.reason = False, str(link.get("reason") or seen.reason)
        return [links[ends] for ends in sorted(links)]

    def _users_of_operators(self) -> dict[str, list[str]]:
        users: dict[str, list[str]] = {}
        for name, view in self.views.items():
            for row in view["own"]:
                home = row.get("home", name)  # earlier versions tell of their own alone
                where = f"at {name}" if home == name else f"of {home} at {name}"
                users.setdefault(row["id"], []).extend(f"{user} {where}" for user in row["for"])
        return {operator: list(dict.fromkeys(names)) for operator, names in users.items()}

    def users(self, operator: str) -> list[str]:
        """Return the subscriptions for which an operator is asked, and where they run."""
        return self._users.get(operator, [])

    def covered(self, operator: str, flow: LinkFlow) -> list[Mapping[str, Any]]:
        """Return what need not be asked for over a link by itself, as this operator covers it.

        Both of what came to the receiver from one side, and of what came from several.
        """
        view = self.views.get(flow.receiver)
        if view is None:
            return []
        rows = [*view["own"]]
        for link in view["neighbours"].values():
            rows += link.get("wants", ())
        rows += view["neighbours"].get(flow.sender, {}).get("asked", ())
        covered = {row["id"]: row for row in rows if operator in row["covered_by"]}
        return list(covered.values())

    def flow(self, sender: str, receiver: str) -> LinkFlow | None:
        """Return what went from `sender` to `receiver`; None where neither end answered."""
        near = self._link(sender, receiver)
        far = self._link(receiver, sender)
        if near is None and far is None:
            return None
        events = near["sent"] if near is not None else far["received"] if far is not None else {}
        wants = (near or {}).get("wants") or (far or {}).get("asked") or []
        return LinkFlow(
            sender,
            receiver,
            dict(events),
            operators=[row for row in wants if not row["covered_by"]],
            waiting=list((near or {}).get("waits_for_partners", ())),
            hosts=tuple((near or {}).get("hosts", ())),
            kinds=dict((near or {}).get("kinds", {})),
            unsure=bool((near or {}).get("unsure", False)),
        )

    def _link(self, name: str, peer: str) -> View | None:
        view = self.views.get(name)
        link: View | None = view["neighbours"].get(peer) if view is not None else None
        return link

    def flows(self) -> list[LinkFlow]:
        """Return what went over each link, in both directions, where an end answered."""
        hops = [hop for link in self.links for hop in (link.ends, link.ends[::-1])]
        flows = [self.flow(*hop) for hop in hops]
        return [flow for flow in flows if flow is not None]

    def tree(self) -> list[tuple[str, int, str]]:
        """Return (broker, depth, parent) of the overlay tree, parents before children.

        It hangs from the first broker that answered; what is not linked to it follows at depth 0.
        """
        beside: dict[str, list[str]] = {name: [] for name in self.reachable}
        for link in self.links:
            if link.in_tree:
                for end, other in (link.ends, link.ends[::-1]):
                    beside.setdefault(end, []).append(other)
        rows: list[tuple[str, int, str]] = []
        seen: set[str] = set()
        for root in [*self.views, *sorted(beside)]:
            stack = [(root, 0, "")]
            while stack:
                name, depth, parent = stack.pop()
                if name not in seen:
                    seen.add(name)
                    rows.append((name, depth, parent))
                    below = sorted(beside.get(name, ()), reverse=True)
                    stack += [(other, depth + 1, name) for other in below]
        return rows


def with_rates(before: NetworkPicture, after: NetworkPicture) -> list[LinkFlow]:
    """Return the flows of `after`, with the events a second since `before`.

    The time between is that of the broker that counted; after a restart, what it counted since.
    """
    earlier = {(flow.sender, flow.receiver): flow for flow in before.flows()}
    flows = after.flows()
    for flow in flows:
        before_it = earlier.get((flow.sender, flow.receiver))
        counter = flow.sender if flow.sender in after.views else flow.receiver
        if before_it is None or counter not in before.views:
            continue
        span_ms = after.views[counter]["now"] - before.views[counter]["now"]
        restarted = flow.total < before_it.total
        for name, count in flow.events.items() if span_ms > 0 else ():
            more = count - (0 if restarted else before_it.events.get(name, 0))
            flow.per_s[name] = 1000 * max(more, 0) / span_ms
    return flows
