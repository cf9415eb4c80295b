"""Output logs of brokers that are not there, over real HTTP: they can be away, lose and change."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from server.detection.mapping import UsedParts, event_of, type_of

ROWS_MAX = 10_000


def result(number, end_ms, subscription="Frost", location="hall", **values):
    """A result as brokers write it."""
    return {
        "subscription": subscription,
        "seq": 1,
        "id": f"{subscription}-{location}-{number}",
        "subscriber": "team",
        "actor": "alerts",
        "start": end_ms - 500,
        "end": end_ms,
        "certainty": "yes",
        "group": {"location": location},
        "values": {"n": number, **values},
        "events": {"t": [f"e-{number}"]},
        "detected_at": end_ms + 20,
    }


def event_from(said, broker, types=None):
    """The event that a result is, with all that it says."""
    parts = msgspec.json.decode(json.dumps(said), type=UsedParts)
    return event_of(parts, broker, type_of(parts, types or {}))


class FakeLog:
    """One broker's log; `rows` are (offset, payload, end)."""

    def __init__(self, epoch="e1", forms=("arrow", "msgpack", "json"), range_rows_max=ROWS_MAX):
        self.epoch = epoch
        self.forms = forms
        self.range_rows_max = range_rows_max
        self.former = False  # a broker of an older version, whose Arrow pages have seven columns
        self.rows = []
        self.earliest = 0
        self.end = 0
        self.acks = {}
        self.forgotten = []
        self.asked = []
        self.settled = None  # (subscriptions, until, behind); None: it can tell nothing of that
        self.settled_of = {}  # the same where these are asked for, as the query has them
        self.inherited = []  # what it says that it has of lost logs
        self.meeting = None  # a barrier that all wait at who ask for ranges or acknowledge
        self.failing = 0  # so many requests for ranges are answered 503
        self._moved = threading.Condition()
        self._server = None
        self.port = 0
        self.open()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def add(self, *results, skip=0):
        """Put results behind the end; before them, `skip` offsets are left out."""
        with self._moved:
            for one in results:
                at = self.end + skip
                self.rows.append((at, msgspec.json.encode(one).decode(), one["end"]))
                self.end = at + 1
                skip = 0
            self._moved.notify_all()

    def retain(self, earliest):
        """Retention takes what is before."""
        self.earliest = earliest
        self.rows = [row for row in self.rows if row[0] >= earliest]

    def open(self):
        log = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self._answer("GET")

            def do_POST(self):
                self._answer("POST")

            def do_DELETE(self):
                self._answer("DELETE")

            def _answer(self, method):
                parts = urlsplit(self.path)
                asked = {name: "\0".join(all_) for name, all_ in parse_qs(parts.query).items()}
                if log._server is None:
                    self.close_connection = True
                    return
                status, body = log.answer(method, parts.path, asked)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a reader that went away

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        """The broker is away."""
        server, self._server = self._server, None
        if server is not None:
            with self._moved:
                self._moved.notify_all()
            server.shutdown()
            server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def answer(self, method, path, asked):
        self.asked.append((path, asked))
        if asked.get("epoch", self.epoch) != self.epoch:
            return self._refusal(409, "the log is another one")
        name = path.removeprefix("/v1/log").strip("/") or "range"
        if method == "DELETE":
            self.forgotten.append(unquote(name.removeprefix("consumers/")))
            return 200, {"ok": self.acks.pop(self.forgotten[-1], None) is not None}
        return getattr(self, f"_{name}")(asked)

    def _refusal(self, status, message, **more):
        told = {"ok": False, "errors": [{"message": message}], "epoch": self.epoch}
        return status, told | {"earliest": self.earliest, "end": self.end} | more

    def _offsets(self, asked):
        wait_s = float(asked.get("wait", 0))

        def has_moved():
            until_ms = None if self.settled is None else self.settled[1]
            further = "settled" in asked and until_ms is not None
            return (
                self.end != int(asked["after"])
                or self._server is None
                or (further and until_ms > int(asked["settled"]))
            )

        if "after" in asked and wait_s:
            with self._moved:
                self._moved.wait_for(has_moved, wait_s)
        standing = {"epoch": self.epoch, "earliest": self.earliest, "end": self.end}
        if "settled" in asked and self.settled is not None:
            settled = self.settled_of.get(asked.get("subscriptions", ""), self.settled)
            standing |= dict(zip(("subscriptions", "settled", "behind"), settled, strict=True))
        if self.inherited:
            standing["inherited"] = self.inherited
        return 200, standing | {"rows_max": ROWS_MAX}

    def promise(self, until_ms, subscriptions=1, behind="Frost: AirTemp of source s9"):
        """Say up to when it is settled."""
        with self._moved:
            self.settled = (subscriptions, until_ms, behind)
            self._moved.notify_all()

    def _range(self, asked):
        begin, end, form = int(asked["from"]), int(asked["to"]), asked["format"]
        if self.meeting is not None:
            self.meeting.wait(10.0)
        if self.failing:
            self.failing -= 1
            return self._refusal(503, "the database fails")
        if form not in self.forms:
            return self._refusal(406, f"{form} is not to be had")
        if begin < self.earliest:
            return self._refusal(410, "retention took it")
        if end > self.end:
            return self._refusal(416, "it is not there yet")
        if end - begin > self.range_rows_max:
            return self._refusal(413, "too much", fits=begin + self.range_rows_max)
        rows = [row for row in self.rows if begin <= row[0] < end]
        return 200, self._render(form, begin, end, rows, asked)

    def _render(self, form, begin, end, rows, asked):
        from broker.http.log_formats import TEXTUAL
        from broker.http.pages import USUAL, PageSelection, make_page
        from broker.http.pages.encoder import PageOrigin
        from tests.broker.rows import row_of

        told = [json.loads(payload) for _, payload, _ in rows]
        made = [
            row_of(at, one["subscription"], one["subscriber"], one["actor"], payload.encode())
            for (at, payload, _), one in zip(rows, told, strict=True)
        ]
        if form != "arrow":
            return TEXTUAL[form][1](self.epoch, begin, end, made)
        columns = tuple(asked["columns"].split(",")) if "columns" in asked else USUAL
        if self.former:
            columns = USUAL[:7]
        subscriptions = tuple(asked["subscription"].split("\0")) if "subscription" in asked else ()
        packed = asked.get("compression") == "lz4"
        selection = PageSelection(columns, subscriptions, packed=packed)
        return make_page(PageOrigin(self.epoch, begin, end), made, selection)

    def _ack(self, asked):
        if self.meeting is not None:
            self.meeting.wait(10.0)
        self.acks[asked["consumer"]] = int(asked["offset"])
        return 200, {"epoch": self.epoch}

    def _ts_at(self, asked):
        offset = int(asked["offset"])
        ends = [end for at, _, end in self.rows if at <= offset]
        return 200, {"epoch": self.epoch, "offset": offset, "ts": max(ends, default=None)}

    def _earliest_end(self, asked):
        offset, after_ms = int(asked["offset"]), int(asked["ts"])
        ends = [end for at, _, end in self.rows if at >= offset and end > after_ms]
        return 200, {"epoch": self.epoch, "offset": offset, "ts": min(ends, default=None)}

    def _first_offset_after(self, asked):
        after = [at for at, _, end in self.rows if end > int(asked["ts"])]
        return 200, {"epoch": self.epoch, "offset": min(after, default=self.end)}

    def _consumers(self, _asked):
        rows = [
            {"consumer": name, "offset": at, "acked_at": 0, "missed": 0}
            for name, at in sorted(self.acks.items())
        ]
        return 200, {"epoch": self.epoch, "consumers": rows}
