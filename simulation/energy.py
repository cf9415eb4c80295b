"""The energy that brokers on batteries would take for what a simulation counted.

Owns the model of a node's costs, as its file has it, and the sums. Must not know what was
simulated. Invariant: what the model leaves out costs nothing, and a total is the sum of its parts.

A radio takes energy for each message and each of its bytes that it sends or receives, and while it
listens; a processor for each message and byte that it works on. Paper 00000, section 7, measures
the first two per node and the whole.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

Joules = Annotated[float, msgspec.Meta(ge=0)]


class EnergyModelError(Exception):
    """The file of a model is none; the text says where."""


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Joules for each message, and for each of its bytes."""

    message_j: Joules = 0.0
    byte_j: Joules = 0.0

    def of(self, messages: int, size_bytes: int) -> float:
        """Return the joules of so many messages with so many bytes together."""
        return self.message_j * messages + self.byte_j * size_bytes


class ListenCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Joules for each second."""

    second_j: Joules = 0.0


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes of a message where a simulation counts messages alone."""

    event_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    operator_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0


class EnergyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The costs of one node."""

    transmit: Cost = Cost()
    receive: Cost = Cost()
    listen: ListenCost = ListenCost()
    compute: Cost = Cost()
    size: Sizes = Sizes()


class NodeWork(msgspec.Struct):
    """The work of one node: messages and bytes that it sent, received and worked on."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    computed: int = 0
    computed_bytes: int = 0


class Energy(msgspec.Struct, frozen=True):
    """Joules of one node, or of several together."""

    transmit_j: float = 0.0
    receive_j: float = 0.0
    listen_j: float = 0.0
    compute_j: float = 0.0

    @property
    def total_j(self) -> float:
        """All of it."""
        return self.transmit_j + self.receive_j + self.listen_j + self.compute_j

    def document(self) -> dict[str, float]:
        """Return it as plain data, to the microjoule."""
        parts = {**msgspec.structs.asdict(self), "total_j": self.total_j}
        return {name: round(joules, 6) for name, joules in parts.items()}


def read_model(path: Path) -> EnergyModel:
    """Return the model in a TOML file. Raises EnergyModelError with the key that is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(document, EnergyModel)
    except OSError as error:
        raise EnergyModelError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise EnergyModelError(
            f"{path}: {error}; docs/simulate.md tells what a model of energy may say"
        ) from None


def energy_of(model: EnergyModel, work: NodeWork, seconds: float) -> Energy:
    """Return what a node takes that does the work, and listens for so long."""
    return Energy(
        model.transmit.of(work.sent, work.sent_bytes),
        model.receive.of(work.received, work.received_bytes),
        model.listen.second_j * seconds,
        model.compute.of(work.computed, work.computed_bytes),
    )


def together(parts: list[Energy]) -> Energy:
    """Return the sum."""
    return Energy(
        sum(part.transmit_j for part in parts),
        sum(part.receive_j for part in parts),
        sum(part.listen_j for part in parts),
        sum(part.compute_j for part in parts),
    )
