"""A reader of all logs that plans as the server tier does, without Spark, for tests."""

import contextlib
import json

from server.source.log import AwayError, GoneError, Log
from server.source.options import SourceOptions
from server.source.places import offset_of, places_of
from server.source.planning import Planner
from server.source.watch import KnownBroker

CONSUMER = "server"


class LogReader:
    """Reads batches; keeps its offset as Spark keeps it, and acknowledges a batch behind."""

    def __init__(self, brokers):
        self.brokers = brokers  # addresses by name, as of now
        self.offset = {}
        self.rows = []  # (broker, offset, result)
        self._acked = {}

    def read(self):
        """Read one batch; False: nothing moved."""
        addresses = self.brokers()
        text = ",".join(f"{name}={address}" for name, address in addresses.items())
        logs = {name: Log(name, address) for name, address in addresses.items()}
        planner = Planner(SourceOptions.of({"brokers": text, "align": "false"}), logs.__getitem__)
        known = {name: self._known(log) for name, log in logs.items()}
        start = places_of(self.offset)
        ends = planner.plan(start, known, 5)
        rows = []
        try:
            for name, end in ends.items():
                begin = start.get(name, end)
                if begin.epoch == end.epoch:
                    first = begin.next if end.first is None else max(begin.next, end.first)
                    rows += self._rows(logs[name], end.epoch, first, end.next)
        except AwayError:
            return False  # the batch is read again
        moved = offset_of(ends) != self.offset
        self.rows += rows
        self.offset = offset_of(ends)
        for name, end in ends.items():  # a log is kept from where it is begun, too
            place = start[name] if name in start and start[name].epoch == end.epoch else end
            if self._acked.get(name) != place and known[name].away is None:
                self._acknowledge(logs[name], place)
                self._acked[name] = place
        for log in logs.values():
            log.close()
        return moved

    @staticmethod
    def _known(log):
        try:
            return KnownBroker(log.offsets())
        except AwayError as error:
            return KnownBroker(None, error)

    @staticmethod
    def _rows(log, epoch, begin, end):
        if begin >= end:
            return []
        page = json.loads(log.page(epoch, begin, end, "json"))
        return [(log.broker, row["offset"], row["result"]) for row in page["rows"]]

    @staticmethod
    def _acknowledge(log, place):
        with contextlib.suppress(AwayError, GoneError):
            log.ack(place.epoch, CONSUMER, place.next)
