"""One broker's output log, asked by HTTP.

Owns the requests and what each answer means. Must not know Spark, nor the other brokers. Invariant:
an answer is bounded, and whatever is not the answer that was asked for is one of the errors below.
"""

import base64
import http.client
import json
import ssl
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from server.source.options import Login
from server.source.places import Inherited, inherited_of

ANSWER_BYTES_MAX: Final = 64 * 2**20  # a range holds at most 8 MiB of results, whatever its form
Params = dict[str, str] | list[tuple[str, str]]  # a list where a name stands several times
CONNECT_S: Final = 10.0
ANSWER_S: Final = 60.0


class LogError(Exception):
    """A broker's log cannot be read as asked."""


class AwayError(LogError):
    """The broker cannot be reached, or fails; it may answer later."""


class GoneError(LogError):
    """Retention took results of the range; `earliest` is what is left."""

    def __init__(self, message: str, earliest: int) -> None:
        super().__init__(message)
        self.earliest = earliest


class NotYetError(LogError):
    """The log does not go so far; `end` is how far it goes."""

    def __init__(self, message: str, end: int) -> None:
        super().__init__(message)
        self.end = end


class EpochError(LogError):
    """The log is another one than the one that offsets were kept of."""


class TooLargeError(LogError):
    """The range is too large; up to `fits` it is not."""

    def __init__(self, message: str, fits: int) -> None:
        super().__init__(message)
        self.fits = fits


class FormError(LogError):
    """The broker cannot answer in this form."""


class LogStanding(NamedTuple):
    """The ends of a log: results of earliest … end − 1 can be read.

    No result of these `subscriptions` comes behind that ends at or before `settled_ms`; None: one
    of them has promised nothing yet, and `behind` says which and why. `subscriptions` None: this
    was not asked, or is more than the broker can tell.
    """

    epoch: str
    earliest: int
    end: int
    rows_max: int
    subscriptions: int | None = None
    settled_ms: int | None = None
    behind: str = ""
    inherited: tuple[Inherited, ...] = ()  # results of brokers that it took over

    @property
    def promises(self) -> bool:
        """Tell whether it says up to when it is settled."""
        return self.subscriptions is not None


class Log:
    """The log of one broker; it keeps a connection, and belongs to one thread."""

    def __init__(self, broker: str, address: str, login: Login | None = None) -> None:
        self.broker = broker
        self._parts = urlsplit(address)
        self._login = login or Login()
        self._connection: http.client.HTTPConnection | None = None

    def offsets(
        self,
        after: int | None = None,
        wait_s: float = 0.0,
        settled_ms: int | None = None,
        subscriptions: Iterable[str] = (),
    ) -> LogStanding:
        """Return the standing of the log; with `after`, once it ends elsewhere, or after `wait_s`.

        With `settled_ms`, also up to when it is settled, and that as soon as it is past this time.
        """
        params = {} if after is None else {"after": str(after), "wait": f"{wait_s:g}"}
        if settled_ms is not None:
            params |= {"settled": str(settled_ms), "subscriptions": ",".join(sorted(subscriptions))}
        reply = self._object("GET", "/v1/log/offsets", params, ANSWER_S + wait_s)
        try:
            whole = int(reply["earliest"]), int(reply["end"]), int(reply.get("rows_max", 10_000))
            inherited = inherited_of(reply.get("inherited", ()))
            standing = LogStanding(str(reply["epoch"]), *whole, inherited=inherited)
            if settled_ms is None or "subscriptions" not in reply:
                return standing
            count, until, behind = (reply[key] for key in ("subscriptions", "settled", "behind"))
            return standing._replace(
                subscriptions=int(count),
                settled_ms=None if until is None else int(until),
                behind=str(behind),
            )
        except (KeyError, TypeError, ValueError):
            raise self._stranger() from None

    def page(self, epoch: str, begin: int, end: int, form: str) -> bytes:
        """Exactly this range, in a form."""
        params = {"epoch": epoch, "from": str(begin), "to": str(end), "format": form}
        return self._ask("GET", "/v1/log", params, ANSWER_S)

    def columns(
        self, epoch: str, begin: int, end: int, names: Sequence[str], subscriptions: Sequence[str]
    ) -> bytes:
        """Exactly this range as Arrow: these columns, and results of these subscriptions alone.

        Of a broker of an older version it is the columns that it had, of all subscriptions.
        """
        params = {"epoch": epoch, "from": str(begin), "to": str(end), "format": "arrow"}
        params |= {"columns": ",".join(names), "compression": "lz4"}
        more = [("subscription", name) for name in subscriptions]
        return self._ask("GET", "/v1/log", [*params.items(), *more], ANSWER_S)

    def ack(self, epoch: str, consumer: str, offset: int) -> None:
        """Tell that a consumer has everything before an offset."""
        params = {"epoch": epoch, "consumer": consumer, "offset": str(offset)}
        self._object("POST", "/v1/log/ack", params, ANSWER_S)

    def consumers(self) -> dict[str, int]:
        """Return who reads the log, and the offset before which each has everything."""
        rows = self._object("GET", "/v1/log/consumers", {}, ANSWER_S).get("consumers", ())
        try:
            return {str(row["consumer"]): int(row["offset"]) for row in rows}
        except (KeyError, TypeError, ValueError):
            raise self._stranger() from None

    def forget(self, consumer: str) -> None:
        """Have nothing kept for a consumer any more."""
        self._object("DELETE", f"/v1/log/consumers/{quote(consumer, safe='')}", {}, ANSWER_S)

    def ts_at(self, epoch: str, offset: int) -> int | None:
        """The latest end, in ms, of all results up to and with an offset."""
        params = {"epoch": epoch, "offset": str(offset)}
        ts = self._object("GET", "/v1/log/ts_at", params, ANSWER_S).get("ts")
        return None if ts is None else int(ts)

    def first_offset_after(self, epoch: str, ts_ms: int) -> int:
        """The first offset whose result ends after a time; the log's end where there is none."""
        params = {"epoch": epoch, "ts": str(ts_ms)}
        reply = self._object("GET", "/v1/log/first_offset_after", params, ANSWER_S)
        return int(reply["offset"])

    def earliest_end(self, epoch: str, offset: int, after_ms: int) -> int | None:
        """Of the results from an offset on that end after a time, the earliest end, in ms."""
        params = {"epoch": epoch, "offset": str(offset), "ts": str(after_ms)}
        ts = self._object("GET", "/v1/log/earliest_end", params, ANSWER_S).get("ts")
        return None if ts is None else int(ts)

    def close(self) -> None:
        """Close the connection; another is made where one is needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- one request -----------------------------------------------------------------------

    def _object(
        self, method: str, path: str, params: dict[str, str], timeout_s: float
    ) -> dict[str, Any]:
        value = _decoded(self._ask(method, path, params, timeout_s))
        if not isinstance(value, dict):
            raise self._stranger()
        return value

    def _ask(self, method: str, path: str, params: Params, timeout_s: float) -> bytes:
        target = self._parts.path + path + ("?" + urlencode(params) if params else "")
        kept = self._connection is not None
        try:
            status, data = self._exchange(method, target, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not kept:
                why = (getattr(error, "strerror", None) or str(error)).lower()
                raise AwayError(f"broker {self.broker} cannot be reached: {why}") from None
            # A connection that was kept may have been closed from over there meanwhile.
            return self._ask(method, path, params, timeout_s)
        if status != 200:
            raise self._refusal(status, data)
        return data

    def _exchange(self, method: str, target: str, timeout_s: float) -> tuple[int, bytes]:
        connection = self._connection = self._connection or self._connected()
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        connection.request(method, target, headers=self._headers())
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        answer = connection.getresponse()
        data = answer.read(ANSWER_BYTES_MAX + 1)
        if len(data) > ANSWER_BYTES_MAX:
            self.close()
            raise LogError(f"broker {self.broker} answers more than {ANSWER_BYTES_MAX} bytes")
        return answer.status, data

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port or 80, timeout=CONNECT_S)
        context = ssl.create_default_context(cafile=self._login.ca_file)
        return http.client.HTTPSConnection(host, port or 443, timeout=CONNECT_S, context=context)

    def _headers(self) -> dict[str, str]:
        if self._login.user is None:
            return {}
        login = f"{self._login.user}:{self._login.password()}".encode()
        return {"Authorization": "Basic " + base64.b64encode(login).decode()}

    def _refusal(self, status: int, data: bytes) -> LogError:
        document = _decoded(data)
        document = document if isinstance(document, dict) else {}
        why = f"broker {self.broker}: {_sentence(document, status)}"
        if status == 410:
            return GoneError(why, int(document.get("earliest", 0)))
        if status == 416:
            return NotYetError(why, int(document.get("end", 0)))
        if status == 413 and "fits" in document:
            return TooLargeError(why, int(document["fits"]))
        if status == 409:
            return EpochError(why)
        if status == 406:
            return FormError(why)
        # What fails, or is only starting, may answer later.
        return AwayError(why) if status >= 500 or status == 429 else LogError(why)

    def _stranger(self) -> LogError:
        return LogError(f"broker {self.broker}: what answers at its address is no Headwater broker")


def tell(message: str) -> None:
    """A line on the standard error of whatever process this runs in."""
    sys.stderr.write(f"headwater: {message}\n")
    sys.stderr.flush()


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _sentence(told: dict[str, Any], status: int) -> str:
    try:
        return str(told["errors"][0]["message"])
    except (KeyError, IndexError, TypeError):
        reasons = {401: "it wants a user and a password", 403: "it does not answer to this user"}
        return reasons.get(status, f"it answers with status {status}")
