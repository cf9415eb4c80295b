"""The timed Petri nets of Jin et al., section 5.3, token by token.

Owns the three nets SEQ, NLoop and TLoop over readings in order. Must not know the engine.
Invariant: a token is used once. Bounds include their ends, as the language's do.
"""

from __future__ import annotations

from collections.abc import Sequence

Token = tuple[int, str]  # time in ms, name


def seq(tokens: Sequence[tuple[int, str, int]], a_ms: int, b_ms: int) -> list[list[str]]:
    """Figure 3; the third part of a token is its buffer, 1 or 2. Buffer 2: fire or eliminate."""
    buffer_1: list[Token] = []
    fired = []
    for now, name, buffer in tokens:
        buffer_1 = [token for token in buffer_1 if now - token[0] <= b_ms]
        if buffer == 1:
            buffer_1.append((now, name))
            continue
        ripe = [token for token in buffer_1 if now - token[0] >= a_ms]
        if ripe:
            buffer_1.remove(ripe[0])
            fired.append([ripe[0][1], name])
    return fired


def nloop(tokens: Sequence[Token], count: int) -> list[list[str]]:
    """Figure 4: an arc of weight `count` takes as many tokens at once."""
    buffer_1: list[str] = []
    fired = []
    for _, name in tokens:
        buffer_1.append(name)
        if len(buffer_1) == count:
            fired.append(buffer_1)
            buffer_1 = []
    return fired


def tloop(tokens: Sequence[Token], a_ms: int, b_ms: int) -> list[list[str]]:
    """Figure 5: buffer 2 holds the last token; unless the next finds it ripe, buffer 1 fires."""
    buffer_1: list[str] = []
    buffer_2: int | None = None
    fired = []
    for now, name in tokens:
        if buffer_2 is not None and not a_ms <= now - buffer_2 <= b_ms:
            fired.append(buffer_1)
            buffer_1 = []
        buffer_1.append(name)
        buffer_2 = now
    return [*fired, buffer_1] if buffer_1 else fired
