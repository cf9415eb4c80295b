"""CONNECT and CONNACK: who may come in, under which session.

Owns the way from a CONNECT to an open connection or a refusal. Must not know sockets or how
passwords are checked. Invariant: a connection is open only after its login was found good; the
session it then has is its own and no other connection's.
"""

from typing import TYPE_CHECKING

from broker.mqtt.application import ClientInfo
from broker.mqtt.codec.encoder import encode
from broker.mqtt.codec.packets import V5, V311, Connack, Connect, Properties
from broker.mqtt.codec.reasons import CONNECT_RETURN_CODES, ProtocolError, Reason
from broker.mqtt.effects import CheckPassword
from broker.mqtt.routing.message import SentAliases
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.departures import end_session, make_room
from broker.mqtt.sessions.session import Session, holder_of
from broker.mqtt.sessions.subscriptions import receiver

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.connection import Connection

# What a 3.1.1 or unknown client is told of a protocol level that is not spoken here.
UNSUPPORTED = b"\x20\x02\x00\x01"


def begin(hub: "Hub", connection: "Connection", connect: Connect, now_ms: int) -> None:
    """Look at a CONNECT; open the connection, have its login checked first, or ProtocolError."""
    connection.version = connect.version
    properties = connect.properties or Properties()
    if properties.authentication_method is not None:
        raise ProtocolError(
            Reason.BAD_AUTHENTICATION_METHOD, "no extended authentication is spoken here"
        )
    if not connect.client_id and connect.version == V311 and not connect.clean_start:
        raise ProtocolError(
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
            "a session without a client identifier cannot be kept",
        )
    if not hub.users_only or (connect.username is None and connection.certificate_user is not None):
        open_connection(hub, connection, connect, connection.certificate_user, now_ms)
    elif connect.username is None:
        raise ProtocolError(Reason.NOT_AUTHORIZED, "a client gives no user name")
    else:
        # It is read on meanwhile, within a bound: only so is it noticed when it goes away.
        connection.connect = connect
        password = connect.password or b""
        barred = hub.logins.barred(connection.address, now_ms)
        hub.effects.append(CheckPassword(connection, connect.username, password, barred))


def open_connection(
    hub: "Hub", connection: "Connection", connect: Connect, user: str | None, now_ms: int
) -> None:
    """Give the connection its session and tell it; ProtocolError where it may not have it."""
    properties = connect.properties or Properties()
    client_id = connect.client_id or hub.new_client_id()
    client = ClientInfo(client_id, user, connection.address, connect.version)
    will = connect.will
    if will is not None and (
        will.topic.startswith("$")
        or (hub.authorize is not None and not hub.authorize(client, will.topic, "publish"))
    ):
        raise ProtocolError(Reason.NOT_AUTHORIZED, "a will is for a topic that is not allowed")
    expiry_s = _expiry_s(hub, connect, properties)
    welcome = _welcome(hub, connect, expiry_s, client_id) if connect.version == V5 else None
    connection.packet_bytes_max = properties.maximum_packet_size or 0xFFFFFFFF
    aliases_max = min(properties.topic_alias_maximum or 0, hub.limits.sent_aliases_max)
    connection.sent_aliases = SentAliases(aliases_max) if aliases_max else None
    # Before there is a session: a refusal is shorter.
    connection.fitting(Connack(False, Reason.SUCCESS, welcome))
    session, present = _counted_session(hub, connection, client, connect.clean_start, now_ms)
    session.client = connection.client = client
    session.connection = connection
    session.will = will
    session.expiry_ms = 1000 * expiry_s
    connection.session = session
    connection.connect = None
    connection.receive_max = min(
        properties.receive_maximum or hub.limits.inflight_max, hub.limits.inflight_max
    )
    _keep(hub, session)
    hub.watch(connection, _server_keep_alive_s(hub, connect) or connect.keep_alive_s, now_ms)
    connection.send(connection.fitting(Connack(present, Reason.SUCCESS, welcome)))
    session.outgoing.attach(connection)
    session.outgoing.pump(now_ms)


def _keep(hub: "Hub", session: Session) -> None:
    """Keep the session on disk where it is to outlast its connection, or its will, in any case."""
    keeping = hub.keeping
    if keeping is None:
        return
    if not session.expiry_ms:
        keeping.forget(session)  # it was to outlast another connection, and not this one
    elif session.outgoing.kept is None:
        session.outgoing.kept = keeping
    if session.expiry_ms or session.will is not None:
        keeping.session(session)


def refuse(connection: "Connection", error: ProtocolError) -> None:
    """Tell a connection that is not open yet why not, as far as its version has words for it."""
    if error.reason == Reason.UNSUPPORTED_PROTOCOL_VERSION:
        connection.send(UNSUPPORTED)
    elif connection.version == V5:
        connection.send(encode(Connack(False, error.reason), V5))
    elif connection.version == V311:
        code = CONNECT_RETURN_CODES.get(error.reason)
        if code is not None:
            connection.send(encode(Connack(False, code), V311))


def _counted_session(
    hub: "Hub", connection: "Connection", client: ClientInfo, clean_start: bool, now_ms: int
) -> tuple[Session, bool]:
    """Return the session as `_session` does, the connection counted against its quotas."""
    before = hub.sessions.get(client.client_id)
    # A client that comes again takes the place of its own connection, not a further one.
    replaces = before is not None and before.connection is not None
    holder = holder_of(client)
    refusal = hub.quotas.take("connections", holder, spare=int(replaces))
    if refusal is not None:
        raise ProtocolError(Reason.QUOTA_EXCEEDED, refusal)
    try:
        session, present = _session(hub, client, clean_start, now_ms)
    except ProtocolError:
        hub.quotas.give("connections", holder)
        raise
    connection.holder = holder
    return session, present


def _session(
    hub: "Hub", client: ClientInfo, clean_start: bool, now_ms: int
) -> tuple[Session, bool]:
    """The session to go on with, and whether it was there before."""
    session = hub.sessions.get(client.client_id)
    if session is not None:
        if session.client.user != client.user:
            raise ProtocolError(
                Reason.NOT_AUTHORIZED, "the client identifier is another user's session"
            )
        if session.connection is not None:
            hub.take_over(session.connection, now_ms)
            session = hub.sessions.get(client.client_id)  # gone, if it ended with its connection
    if session is not None and clean_start:
        end_session(hub, session, "clean_start", now_ms)
        session = None
    if session is not None:
        session.still_timers()
        return session, True
    make_room(hub, now_ms)
    outgoing = ClientQueue(
        client.client_id, hub.limits, hub.counters, hub.router.retained, receiver(hub, client)
    )
    outgoing.room.account = hub.quotas.account(client.user)
    session = hub.sessions[client.client_id] = Session(client, outgoing)
    hub.counters.sessions = len(hub.sessions)
    return session, False


def _expiry_s(hub: "Hub", connect: Connect, properties: Properties) -> int:
    if connect.version == V5:
        return min(properties.session_expiry_interval or 0, hub.limits.session_expiry_s_max)
    return 0 if connect.clean_start else hub.limits.session_expiry_s_max


def _server_keep_alive_s(hub: "Hub", connect: Connect) -> int | None:
    """Return the keep-alive that the client is told in place of its own; None: its own holds."""
    keep_alive_s = hub.limits.keep_alive_s_max
    if not keep_alive_s or connect.version != V5 or 0 < connect.keep_alive_s <= keep_alive_s:
        return None
    return keep_alive_s


def _welcome(hub: "Hub", connect: Connect, expiry_s: int, client_id: str) -> Properties:
    wanted = connect.properties or Properties()
    return Properties(
        session_expiry_interval=(
            None if expiry_s == (wanted.session_expiry_interval or 0) else expiry_s
        ),
        receive_maximum=hub.limits.receive_max,
        maximum_packet_size=hub.limits.packet_bytes_max,
        assigned_client_identifier=None if connect.client_id else client_id,
        topic_alias_maximum=hub.limits.topic_alias_max,
        server_keep_alive=_server_keep_alive_s(hub, connect),
    )
