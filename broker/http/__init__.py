"""The HTTP face of a broker: probes, metrics and what the command line needs.

Owns the routes, their OpenAPI description and the live stream of results. Must not know the core:
everything it tells, it asks of a `BrokerFacade`. Invariant: no request, however malformed or slow,
costs more than its stated bound.
"""

from broker.http.app import HttpListener, HttpListenError, HttpOptions, listen, make_app
from broker.http.facade import BrokerFacade, RequestReply
from broker.http.fan import Follower, FollowersFullError, ResultFan
from broker.http.log_facade import ResultLog
from broker.metrics.ledger import MetricsLedger

__all__ = [
    "BrokerFacade",
    "Follower",
    "FollowersFullError",
    "HttpListenError",
    "HttpListener",
    "HttpOptions",
    "MetricsLedger",
    "RequestReply",
    "ResultFan",
    "ResultLog",
    "listen",
    "make_app",
]
