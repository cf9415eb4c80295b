"""Why a program did not get what it asked a running broker for.

Owns this error. Must not know requests. Invariant: none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from language.errors import HeadwaterError


class ClientError(HeadwaterError):
    """A broker refused, or could not be reached (`reached` is False then).

    `errors` are the broker's own, as `docs/mqtt.md` tells them: each with a `message`, and of a
    faulty text with `code`, `line`, `column` and `hint`.
    """

    def __init__(
        self, message: str, errors: Sequence[Mapping[str, Any]] = (), *, reached: bool = True
    ) -> None:
        super().__init__(message)
        self.errors = tuple(errors) or ({"message": message},)
        self.reached = reached
