"""The statements against other processes: a whole broker of ours, and mosquitto.

The latter tests the tests themselves: others have tested mosquitto too, so it has to pass them.
Where it does otherwise, `DIFFERENCES` says what; what is not named there must hold.
"""

import pytest

from tests.broker.running import RunningBroker
from tests.conformance.clients import NotSpoken, Scene
from tests.conformance.peers import Process, mosquitto
from tests.conformance.statements import register

# What mosquitto 2.0.11 does otherwise than the standard says, by statement.
_FLAGS = "it does not look at the reserved flags of PUBACK, PUBREC, PUBCOMP and PINGREQ"
_DUP = "it takes a message of QoS 0 that bears DUP"
_AGAIN = (
    "a PUBLISH of QoS 2 whose identifier is not released yet closes the connection unless it bears "
    "DUP; the standard asks for another PUBREC whatever DUP says"
)
_SETTINGS = "the test needs a server with other settings"
_PINGRESP = "it passes over a PINGRESP of a client's"
DIFFERENCES = {
    "3.1.1-MQTT-2.2.2-2": _FLAGS,
    "3.1.1-MQTT-3.3.1-2": _DUP,
    "3.1.1-MQTT-3.3.5-1": "of overlapping subscriptions the one found first gives the QoS",
    "3.1.1-MQTT-4.3.3-2": _AGAIN,
    "3.1.1-MQTT-4.8.0-1": _PINGRESP,
    "3.1.1-MQTT-4.8.0-2": "it has no bound of its own to a packet's size",
    "5-MQTT-2.1.3-1": _FLAGS,
    "5-MQTT-3.1.2-8": "a will whose delay is longer than its session waits for the delay",
    "5-MQTT-3.1.2-24": "it sends a packet of one byte more",
    "5-MQTT-3.1.2-25": "what it drops as too large still counts as on its way",
    "5-MQTT-3.1.4-3": "who is taken over is closed without the DISCONNECT that says so",
    "5-MQTT-3.1.4-2": _SETTINGS,
    "5-MQTT-3.2.2-18": _SETTINGS,
    "5-MQTT-3.2.2-15": "it has no bound of its own to a packet's size",
    "5-MQTT-3.3.1-2": _DUP,
    "5-MQTT-3.3.2-14": "it does not look into response topics",
    "5-MQTT-3.3.4-6": "it takes a client's PUBLISH with a subscription identifier",
    "5-MQTT-3.3.4-7": "it does not count the messages of a client that are not released",
    "5-MQTT-3.3.4-9": "one PUBACK makes room for two messages",
    "5-MQTT-3.8.3-4": "it grants no local on a shared subscription",
    "5-MQTT-3.8.4-3": "a new subscription to the same filter keeps no local of the old one",
    "5-MQTT-4.3.3-7": "a message on its way expires while its client is away",
    "5-MQTT-4.3.3-10": _AGAIN,
    "5-MQTT-4.8.2-1": "it grants a share without a name",
    "5-MQTT-4.8.2-2": "it grants a share without a filter",
    "5-MQTT-4.13.1-1": _PINGRESP,
}
# What the tests show in a server of their own alone.
NOT_AS_A_CLIENT = {
    *("5-MQTT-3.1.4-2", "5-MQTT-3.2.2-18"),  # with other settings
    *("3.1.1-MQTT-4.7.2-1", "5-MQTT-4.7.2-1"),  # the server itself publishes to such a topic
}


def outcome(statement, peer):
    """Nothing where the statement holds, else what came instead."""
    scene = Scene(peer)
    try:
        statement.test(scene, statement.version)
    except NotSpoken as what:
        return f"not spoken: {what}"
    except Exception as error:  # noqa: BLE001 - each way of failing is one
        return next(iter(str(error).strip().splitlines()), repr(error))
    finally:
        scene.close()
    return ""


def differences(peer, known):
    """What came otherwise than a statement has it, where it is not known; all statements."""
    said = {one.key: outcome(one, peer) for one in register()}
    return {key: what for key, what in said.items() if what and key not in known}, said


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.program("mosquitto")
def test_mosquitto_holds_the_same_statements(find_program, tmp_path):
    with mosquitto(find_program("mosquitto"), tmp_path) as peer:
        found, said = differences(peer, DIFFERENCES)
    assert not found, "\n".join(f"{key}: {what}" for key, what in found.items())
    assert said.keys() >= DIFFERENCES.keys()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_broker_in_its_own_process_holds_all_statements(tmp_path):
    """With the loop, the journal and the settings that it has where somebody starts it."""
    with RunningBroker(tmp_path) as broker:
        found, said = differences(Process(broker.port()), NOT_AS_A_CLIENT)
    assert not found, "\n".join(f"{key}: {what}" for key, what in found.items())
    assert said.keys() >= NOT_AS_A_CLIENT
