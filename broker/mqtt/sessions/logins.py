"""Failed logins by address: whose guesses are not looked at any more for a while.

Owns that memory. Must not know passwords or sockets. Invariant: an address is barred only while as
many logins of its last window failed as are allowed, and what is remembered is bounded.
"""

from msgspec import Struct

from broker.mqtt.limits import MqttLimits


class _Failures(Struct):
    count: int
    until_ms: int


class Logins:
    """Counts what failed. Logins known to be good are let in all the same, see `CheckPassword`.

    So one device with an old password does not keep out those beside it behind the same address.
    """

    def __init__(self, limits: MqttLimits) -> None:
        self._limits = limits
        self._failures: dict[str, _Failures] = {}  # the oldest first

    def barred(self, address: str, now_ms: int) -> bool:
        """Tell whether too many logins failed from this address of late."""
        failures = self._failures.get(host_of(address))
        if failures is None or now_ms >= failures.until_ms:
            return False
        return failures.count >= self._limits.login_failures_max

    def failed(self, address: str, now_ms: int) -> None:
        """A login failed."""
        host = host_of(address)
        failures = self._failures.get(host)
        if failures is not None and now_ms < failures.until_ms:
            failures.count += 1
            return
        self._failures.pop(host, None)
        if len(self._failures) >= self._limits.login_addresses_max:
            del self._failures[next(iter(self._failures))]
        self._failures[host] = _Failures(1, now_ms + self._limits.login_window_ms)


def host_of(address: str) -> str:
    """Return an address without its port."""
    return address.rpartition(":")[0]
