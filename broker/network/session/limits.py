"""Every maximum of links, each with its value, its reason and what happens at it.

Owns the numbers. Must not know who enforces them. Invariant: neither a stranger nor a neighbour nor
a link that is down can make a broker grow without a line here.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from broker.engine.limits import said


class LinkLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maxima and times of links; all maxima are inclusive. Built by `make_link_limits`."""

    # --- what comes in -----------------------------------------------------------------------

    hello_bytes_max: Annotated[
        int, said("of a frame while the other is not known yet: strangers talk", "closed", 512)
    ] = 4_096
    message_bytes_max: Annotated[
        int, said("of one message, on both sides: longer ones delay all others", "refused; closed")
    ] = 1_048_576
    messages_max: Annotated[
        int, said("messages of one frame, which is decoded at once", "closed: malformed")
    ] = 4_096
    strangers_max: Annotated[
        int, said("connections at a time that have not said who they are", "further ones closed")
    ] = 64
    neighbours_max: Annotated[
        int, said("neighbours, each with its buffers, until forgotten", "further ones closed")
    ] = 1_000
    credit_events_max: Annotated[
        int, said("events that a neighbour may send ahead while all is held", "it has to wait")
    ] = 65_536
    credit_bytes_max: Annotated[
        int, said("the same in bytes of messages; one frame more may come", "it has to wait")
    ] = 16_777_216

    # --- what goes out -----------------------------------------------------------------------

    batch_events: Annotated[
        int,
        said(
            "a frame leaves when it holds so many: more would make nothing cheaper",
            "the next frame",
        ),
    ] = 128
    batch_bytes: Annotated[int, said("or so many bytes of messages", "the next frame")] = 131_072
    unacked_bytes_max: Annotated[
        int, said("sent and kept until acknowledged, whatever credit was given", "the rest waits")
    ] = 16_777_216
    waiting_events_max: Annotated[
        int, said("events that wait for a slow or cut link", "refused: told, counted")
    ] = 65_536
    waiting_bytes_max: Annotated[int, said("the same in bytes", "refused: told, counted")] = (
        33_554_432
    )
    control_bytes_max: Annotated[
        int,
        said(
            "control that waits or is not acknowledged: some ten thousand operators",
            "the session lapses: all is said anew",
        ),
    ] = 67_108_864

    # --- times -------------------------------------------------------------------------------

    flush_ms: Annotated[
        int, said("frames of few events leave no oftener: each costs as a full one", "they wait", 0)
    ] = 3
    handshake_ms: Annotated[
        int, said("until a connection is agreed on; some ten round trips to anywhere", "closed")
    ] = 5_000
    heartbeat_ms: Annotated[int, said("how long a link says nothing", "a sign of life is sent")] = (
        75_000
    )
    silence_ms: Annotated[
        int,
        said(
            "how long nothing comes on a link: two heartbeats; a machine that is gone is noticed "
            "by TCP's keep-alive, in a quarter of a minute",
            "closed and dialled anew",
        ),
    ] = 190_000

    def __post_init__(self) -> None:
        """Raises ValueError where two of them do not go together."""
        if self.silence_ms <= self.heartbeat_ms:
            raise ValueError("silence_ms must be more than heartbeat_ms")
        if self.batch_events > self.messages_max:
            raise ValueError("batch_events must not be more than messages_max")

    @property
    def frame_bytes_max(self) -> int:
        """Of a frame of an open link."""
        return max(self.message_bytes_max, self.batch_bytes) + self.messages_max * 5 + 64


def make_link_limits(**values: int) -> LinkLimits:
    """Limits with some values of one's own; ValueError names the one that cannot be."""
    try:
        return msgspec.convert(values, LinkLimits, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"link limits: {error}") from None
