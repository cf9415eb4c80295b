"""The settings of paper 002, section VI, and those beyond it that say how far a bound is.

Owns their numbers. Must not know how they are drawn. Invariant: what the paper does not say is
marked as ours.
"""

from __future__ import annotations

from typing import NamedTuple

DELTA_T_S = 180  # ours: readings come every 120 s
DEGREE_MAX = 4  # ours: of a relay, among relays
STEP = 0.25  # ours: the least step from the median, in standard deviations; the rest is Pareto(1)
MATCHING_MIN = 50  # ours: "a minimum number of matching events" for each subscription
RARE_S = 1800  # ours: how often a rare attribute is read in the settings with mixed rates


class Setting(NamedTuple):
    """One network with its subscriptions.

    `stations`: how many have all five sensors in the network; `across`: of how many near ones each
    subscription asks; `rare`: how many attributes are read every `rare_s` only; `hours`: how
    much of the recording is replayed (None: all).
    """

    name: str
    title: str
    nodes: int
    stations: int
    attributes: tuple[int, int]
    counts: tuple[int, ...]
    across: int = 1
    rare: int = 0
    step: float = STEP
    matching_min: int = MATCHING_MIN
    hours: int | None = None
    rare_s: int = RARE_S

    @property
    def sensors(self) -> int:
        """Five at each station."""
        return 5 * self.stations


PAPER = (
    Setting("small", "small: 60 brokers, 50 sensors", 60, 10, (3, 5), (100, 400, 1000)),
    Setting("medium", "medium: 100 brokers, 50 sensors", 100, 10, (5, 5), (100, 400, 900)),
    Setting("large", "large network: 200 brokers, 50 sensors", 200, 10, (5, 5), (100, 400, 900)),
    Setting("sources", "large sources: 200 brokers, 100 sensors", 200, 20, (5, 5), (100, 400, 900)),
)
"""The four of the paper; it counts after every hundred subscriptions, here three times."""

_MEDIUM = PAPER[1]
BEYOND = (
    _MEDIUM._replace(name="near", title="across three near stations", counts=(400,), across=3),
    _MEDIUM._replace(
        name="mixed",
        title="one station, two of five attributes every 30 min",
        counts=(400,),
        rare=2,
        matching_min=10,
    ),
    _MEDIUM._replace(
        name="near-mixed",
        title="across three near stations, two of five attributes every 30 min",
        counts=(400,),
        across=3,
        rare=2,
        matching_min=10,
    ),
)
"""Where the sensors of a subscription stand apart, or are read at different rates."""

STEPS = (0.15, 0.35, 0.5)
WIDTHS = tuple(
    _MEDIUM._replace(name=f"step-{step}", title=f"step {step}", counts=(400,), step=step)
    for step in STEPS
)
"""Narrower and wider ranges: the paper does not say how wide its own are."""


def quick(setting: Setting) -> Setting:
    """The same in small: what a test has time for."""
    stations = max(2, setting.stations // 5)
    return setting._replace(
        nodes=stations * setting.nodes // setting.stations,
        stations=max(stations, setting.across),
        counts=(5, 15),
        matching_min=5,
        hours=2,
    )
