"""What MQTT clients have to receive, written down as plainly as can be: the oracle of the hub.

No trees, no caches, no queues with room: every question is answered by looking at everything. Time
is in milliseconds; a client's receive maximum and the bounds of queues are not part of it.
"""

from dataclasses import dataclass, field, replace

from tests.broker.mqtt.matching import filter_matches

EXPIRY_311_MS = 86_400_000
SHOWN, TAKEN = "headwater/events/", "headwater/"


@dataclass(frozen=True)
class Said:
    """A message as it was published."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    sender: str
    expires_ms: int | None = None

    def live(self, now_ms):
        return self.expires_ms is None or now_ms < self.expires_ms


@dataclass(frozen=True)
class Heard:
    """A message as a client has to receive it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    identifiers: tuple[int, ...]
    expiry_s: int | None
    dup: bool = False


@dataclass(frozen=True)
class Wanted:
    """A subscription."""

    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0


@dataclass(frozen=True)
class Will:
    said: Said
    delay_ms: int = 0


@dataclass
class Owed:
    """A message at QoS 1 or 2 that the client has not confirmed."""

    said: Said
    wanted: Wanted
    identifiers: tuple[int, ...]
    sent: bool

    @property
    def qos(self):
        return min(self.said.qos, self.wanted.qos)

    def due(self, now_ms):
        """Whether a client that is back has to get it: what began at QoS 2 is ended."""
        return self.said.live(now_ms) or (self.sent and self.qos == 2)


@dataclass
class Session:
    expiry_ms: int
    subscriptions: dict[str, Wanted] = field(default_factory=dict)
    owed: list[Owed] = field(default_factory=list)  # in order; those sent come first
    connected: bool = False
    v5: bool = True
    will: Will | None = None
    will_due_ms: int | None = None
    end_due_ms: int | None = None
    since: int = 0  # the order in which clients went away, for what is due at the same time


class Model:
    """All sessions; `heard` is what each connected client has to have received since `take`."""

    def __init__(self, now_ms):
        self.now_ms = now_ms
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Said] = {}
        self.handed_up: list[Said] = []
        self.heard: dict[str, list[Heard]] = {}
        self._departures = 0

    def take(self):
        heard, self.heard = self.heard, {}
        return heard

    # --- clients come and go --------------------------------------------------------------------

    def connect(self, client, v5, clean, expiry_ms, will):
        """Whether a session was present."""
        if client in self.sessions and self.sessions[client].connected:
            self.lose(client)
        if clean and client in self.sessions:
            self.end(client)
        present = client in self.sessions
        session = self.sessions.setdefault(client, Session(0))
        session.expiry_ms, session.will = expiry_ms, will
        session.will_due_ms = session.end_due_ms = None
        session.connected, session.v5 = True, v5
        session.owed = [one for one in session.owed if one.due(self.now_ms)]
        for one in session.owed:
            self._send(client, one.said, one.wanted, one.identifiers, qos=one.qos, dup=one.sent)
            one.sent = True
        return present

    def lose(self, client):
        """The connection ends without a DISCONNECT."""
        session = self.sessions[client]
        session.connected = False
        self._departures += 1
        session.since = self._departures
        if session.will is not None and session.will.delay_ms:
            session.will_due_ms = self.now_ms + session.will.delay_ms
        else:
            self._publish_will(session)
        if session.expiry_ms:
            session.end_due_ms = self.now_ms + session.expiry_ms
        else:
            self.end(client)

    def restart(self, orderly):
        """The process ends and is back at once. With order nobody was lost, so there is no will.

        What the application retained it would retain again; here it does not.
        """
        connected = sorted(client for client, one in self.sessions.items() if one.connected)
        for client in connected:
            session = self.sessions[client]
            session.connected = False
            if session.expiry_ms:
                session.end_due_ms = self.now_ms + session.expiry_ms
            else:
                session.subscriptions.clear()
            if orderly:
                session.will = None
        for client in connected:
            session = self.sessions[client]
            if session.will is not None and session.will.delay_ms:
                session.will_due_ms = self.now_ms + session.will.delay_ms
            else:
                self._publish_will(session)
        for client in connected:
            if not self.sessions[client].expiry_ms:
                self.end(client)
        self.retained = {topic: said for topic, said in self.retained.items() if said.sender}
        for client in sorted(self.sessions, key=lambda one: self._absence(one, connected)):
            self._departures += 1
            self.sessions[client].since = self._departures

    def _absence(self, client, connected):
        """Since when, those who were connected until the end last."""
        session = self.sessions[client]
        return session.end_due_ms - session.expiry_ms, client in connected, client

    def leave(self, client, with_will=False):
        """The client says DISCONNECT."""
        if not with_will:
            self.sessions[client].will = None
        self.lose(client)

    def end(self, client):
        self._publish_will(self.sessions.pop(client))

    def _publish_will(self, session):
        will, session.will = session.will, None
        session.will_due_ms = None
        if will is not None:
            self.publish(will.said)

    def advance(self, by_ms):
        """Let time pass; a client's will comes before its session's end."""
        until_ms = self.now_ms + by_ms
        while due := sorted(
            (when_ms, session.since, order, client)
            for client, session in self.sessions.items()
            for order, when_ms in enumerate((session.will_due_ms, session.end_due_ms))
            if when_ms is not None and when_ms <= until_ms
        ):
            when_ms, _, order, client = due[0]
            self.now_ms = when_ms
            if order == 0:
                self._publish_will(self.sessions[client])
            else:
                self.end(client)
        self.now_ms = until_ms

    # --- messages -------------------------------------------------------------------------------

    def publish(self, said):
        """How many clients it is meant for."""
        if said.topic.startswith(TAKEN) and said.sender:
            self.handed_up.append(said)
            if not said.topic.startswith(SHOWN):
                return 0
        elif said.retain:
            self.retained.pop(said.topic, None)
            if said.payload:
                self.retained[said.topic] = said
        return sum(self._offer(client, said) for client in list(self.sessions))

    def _offer(self, client, said):
        session = self.sessions[client]
        matching = [
            wanted
            for topic_filter, wanted in session.subscriptions.items()
            if filter_matches(topic_filter, said.topic)
            and not (wanted.no_local and said.sender == client)
        ]
        if not matching:
            return False
        best = Wanted(
            max(wanted.qos for wanted in matching),
            retain_as_published=any(wanted.retain_as_published for wanted in matching),
        )
        identifiers = tuple(sorted(w.identifier for w in matching if w.identifier))
        qos = min(said.qos, best.qos)
        if qos and (said.live(self.now_ms) or not session.connected):
            session.owed.append(Owed(said, best, identifiers, session.connected))
        if session.connected:
            self._send(client, said, best, identifiers, qos)
        return True

    def _send(self, client, said, wanted, identifiers, qos, dup=False, retain=None):
        if not said.live(self.now_ms) and not (dup and qos == 2):
            return
        v5 = self.sessions[client].v5
        left_s = None
        if v5 and said.expires_ms is not None:
            left_s = max(0, -((self.now_ms - said.expires_ms) // 1000))
        if retain is None:
            retain = said.retain and wanted.retain_as_published
        heard = Heard(said.topic, said.payload, qos, retain, identifiers if v5 else (), left_s, dup)
        self.heard.setdefault(client, []).append(heard)

    def acknowledge(self, client):
        """The client confirms all that it has."""
        session = self.sessions[client]
        session.owed = [one for one in session.owed if not one.sent]

    # --- subscriptions --------------------------------------------------------------------------

    def subscribe(self, client, filters, handling, heard):
        """`filters`: filter to `Wanted`, in one packet. `handling`: MQTT 5's retain handling.

        `heard`: topics as they came, as the standard leaves the order of those of a filter open.
        """
        session = self.sessions[client]
        for topic_filter, wanted in filters.items():
            chosen = []
            new = topic_filter not in session.subscriptions
            session.subscriptions[topic_filter] = wanted
            if handling == 0 or (handling == 1 and new):
                for topic, said in self.retained.items():
                    own = wanted.no_local and said.sender == client
                    if filter_matches(topic_filter, topic) and said.live(self.now_ms) and not own:
                        chosen.append(said)
            these, heard = heard[: len(chosen)], heard[len(chosen) :]
            for said in sorted(chosen, key=lambda one: _place(these, one.topic)):
                qos = min(said.qos, wanted.qos)
                identifiers = (wanted.identifier,) if wanted.identifier else ()
                kept = replace(wanted, retain_as_published=True)
                if qos:
                    session.owed.append(Owed(said, kept, identifiers, True))
                self._send(client, said, kept, identifiers, qos, retain=True)

    def unsubscribe(self, client, topic_filter):
        """Whether there was such a subscription."""
        return self.sessions[client].subscriptions.pop(topic_filter, None) is not None


def _place(topics, topic):
    return topics.index(topic) if topic in topics else len(topics)
