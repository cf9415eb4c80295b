"""The settings of one other MQTT server that the broker joins.

Owns their meaning, as `table` does that of all others; there is such a section for each server,
`[joins.NAME]`. Must not know how a server is joined. Invariant: as for every section, each field
carries its meaning.
"""

from typing import Annotated, Literal

import msgspec

from broker.config.about import About

JOINS_MAX = 16  # a site has one or two; each is a connection and two queues


class JoinSection(msgspec.Struct, frozen=True, kw_only=True):
    """Another MQTT server that the broker joins as a client, see docs/joining.md.

    There may be several, each under a name of its own. In the environment the name stands in
    capitals: `HEADWATER__JOINS__HALL__PASSWORD`.
    """

    host: Annotated[str, About("where the server is")] = "127.0.0.1"
    port: Annotated[int, About("its port", at_least=1, at_most=65535)] = 1883
    protocol: Annotated[
        Literal["5", "3.1.1"], About("the version of MQTT to speak to it; 5 where it can")
    ] = "5"
    prefix: Annotated[
        str,
        About(
            "first level or levels of Headwater's topics there",
            pattern=r"[^/+#$\x00][^+#\x00]{0,99}(?<!/)",
            pattern_says="a topic without wildcards that neither begins nor ends with `/`",
        ),
    ] = "headwater"
    client_id: Annotated[
        str,
        About(
            "client identifier there, under which the server keeps what comes while the broker is "
            "away; empty: `headwater-` and the broker's name",
            pattern=r"[A-Za-z0-9._-]{0,128}",
            pattern_says="up to 128 letters, digits, `.`, `_` or `-`",
        ),
    ] = ""
    user: Annotated[str, About("user to log in as; empty: none")] = ""
    password: Annotated[
        str,
        About(
            "its password; rather in the environment than in the file",
            secret=True,
            never_a_flag=True,
        ),
    ] = ""
    password_file: Annotated[
        str, About("file whose first line is the password, instead of `password`", path=True)
    ] = ""
    tls: Annotated[bool, About("encrypt the connection and check the server's certificate")] = False
    tls_ca: Annotated[
        str, About("authority of the server's certificate in PEM; empty: the system's", path=True)
    ] = ""
    tls_cert: Annotated[str, About("client certificate in PEM to show it", path=True)] = ""
    tls_key: Annotated[str, About("private key of `tls_cert` in PEM", path=True)] = ""
    events: Annotated[bool, About("take events and advertisements from it")] = True
    requests: Annotated[
        bool,
        About(
            "take submissions, cancellations and `list` from it; names are then taken on trust, "
            "so let it see to it that clients use their own"
        ),
    ] = False
    results: Annotated[
        bool, About("publish results, late and rejected events and the broker's state to it")
    ] = True
    mappings: Annotated[
        bool, About("take from it what the [mappings] name, outside of `prefix`")
    ] = True
    session_expiry_s: Annotated[
        int,
        About(
            "how long the server is to keep what comes while the broker is away; in MQTT 3.1.1 it "
            "decides itself",
            unit="s",
            at_least=1,
            at_most=4_294_967_295,
        ),
    ] = 604_800
    keep_alive_s: Annotated[
        int,
        About(
            "a connection that is silent for so long is probed, and given up after as long again",
            unit="s",
            at_least=5,
            at_most=65_535,
        ),
    ] = 30
    inflight_max: Annotated[
        int,
        About(
            "messages that the server may send before earlier ones are acknowledged, and the "
            "broker likewise",
            unit="messages",
            at_least=1,
            at_most=65_535,
        ),
    ] = 500
    pending_bytes_max: Annotated[
        int,
        About(
            "of these, what may wait for the journal; past it the connection is not read",
            unit="bytes",
            at_least=1,
            at_most=2**40,
        ),
    ] = 4_194_304
    queue_messages_max: Annotated[
        int,
        About(
            "messages that wait for the server to take them; beyond: the oldest dropped, counted",
            unit="messages",
            at_least=1,
            at_most=100_000_000,
        ),
    ] = 100_000
    queue_bytes_max: Annotated[
        int,
        About("the same in bytes; one message alone may be larger", "bytes", 1, 2**40),
    ] = 67_108_864

    @property
    def is_5(self) -> bool:
        """Tell whether MQTT 5 is spoken."""
        return self.protocol == "5"
