"""The HTTP face of a broker: probes, metrics and what the command line needs.

Owns the routes, their OpenAPI description and the live stream of results. Must not know the core:
everything it tells, it asks of a `BrokerFacade`. Invariant: no request, however malformed or slow,
costs more than its stated bound.
"""

from broker.http.app import HttpOptions, Listener, ListenError, listen, make_app
from broker.http.facade import BrokerFacade, Reply
from broker.http.fan import Follower, FollowersFullError, ResultFan
from broker.http.log_facade import ResultLog
from broker.metrics.ledger import Ledger

__all__ = [
    "BrokerFacade",
    "Follower",
    "FollowersFullError",
    "HttpOptions",
    "Ledger",
    "ListenError",
    "Listener",
    "Reply",
    "ResultFan",
    "ResultLog",
    "listen",
    "make_app",
]
