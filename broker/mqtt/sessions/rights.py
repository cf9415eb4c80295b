"""Connections and subscriptions judged once more, after the rights were read again.

Owns what becomes of those that are no longer granted. Must not know what rights mean. Invariant:
afterwards no connection stands whose login would be refused, and no subscription is in the tree
that would be refused; whoever lost one is disconnected and told why.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.mqtt.codec.reasons import Reason
from broker.mqtt.codec.topics import split_share
from broker.mqtt.sessions.subscriptions import drop

if TYPE_CHECKING:
    from broker.mqtt.application import Authorize, ClientInfo
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.session import Session

REASON = "rights_changed"


def judge_again(
    hub: "Hub",
    authorize: "Authorize | None",
    welcome: "Callable[[ClientInfo, bool], bool]",
    now_ms: int,
) -> int:
    """Put `authorize` in force; return how many clients were disconnected.

    `welcome` says if a client would be let in now, given if a certificate named it. None as
    `authorize`: everything is granted.
    """
    hub.authorize = authorize
    hub.router.ask_of_publishers(authorized=authorize is not None)
    closed = 0
    for session in list(hub.sessions.values()):
        lost = _forget_refused(hub, session)
        connection = session.connection
        if connection is None:
            continue
        certified = session.client.user == connection.certificate_user
        if lost or not welcome(session.client, certified and session.client.user is not None):
            # A will is for a client that was lost; this one is sent away.
            session.will = None
            hub.dismiss(connection, Reason.NOT_AUTHORIZED, REASON, now_ms)
            closed += 1
    return closed


def _forget_refused(hub: "Hub", session: "Session") -> bool:
    """Take away the subscriptions that are granted no more; return if there were any."""
    if hub.authorize is None:
        return False
    refused = [
        topic_filter
        for topic_filter in session.subscriptions
        if not hub.authorize(session.client, split_share(topic_filter)[1], "subscribe")
    ]
    for topic_filter in refused:
        drop(hub, session, topic_filter)
        hub.counters.refuse("subscription_not_authorized")
    return bool(refused)
