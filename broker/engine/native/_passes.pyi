from collections.abc import Callable, Mapping
from typing import Any

SOURCES: str
FILES: str

def readings(
    events: list[Any], owner: type
) -> tuple[list[Any], dict[type[Any], list[Any]]] | None: ...
def course(
    events: list[Any], newest: int, passed: int | None, lateness_ms: int
) -> tuple[int, bool, bool, bool, list[int] | None] | None: ...
def tell(results: list[Any], kind: type) -> list[dict[str, Any]] | None: ...
def give(
    events: list[Any],
    key: str,
    scales: Mapping[Any, Any],
    groups: Mapping[Any, Any],
    made: list[Any],
    slow: Callable[[list[Any]], int],
) -> int: ...
def later(
    ends: list[int], events: list[Any], watermark: int
) -> tuple[list[int], list[Any]] | None: ...
def read_total(events: list[Any], name: str) -> tuple[int, int] | None: ...
def total(values: list[Any]) -> int | None: ...

class Ends:
    def update(self, ends: list[int]) -> None: ...
    def __len__(self) -> int: ...

class Patience:
    def __init__(
        self,
        keys: tuple[str, ...],
        places: int,
        tests: tuple[tuple[tuple[int, int, int], ...], ...],
        last: int,
        room: int,
    ) -> None: ...
    def __call__(
        self,
        entries: list[tuple[int, Any]],
        groups: Mapping[Any, Any],
        touched: Mapping[Any, None],
        spent: Mapping[Any, int],
        asked: Callable[[list[tuple[int, Any]]], None],
    ) -> int: ...

class Teller:
    def __init__(
        self,
        kind: type,
        said: tuple[Any, Any, Any, Any],
        begun: bytes,
        heads: tuple[bytes, ...],
        names: tuple[str, ...],
        keys: tuple[str, ...],
        slow: Callable[[Any], dict[str, Any]],
        several: bool,
    ) -> None: ...
    def __call__(self, result: Any) -> dict[str, Any]: ...

class Maker:
    def __init__(self, kind: type, template: Any) -> None: ...
    def __call__(self, start: int, end: int, group: tuple[Any, ...], event: Any) -> Any: ...

class Scale:
    def __init__(
        self, name: str | None, edges: list[float], cells: tuple[tuple[Any, ...], ...]
    ) -> None: ...
