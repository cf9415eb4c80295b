"""The states of other brokers: what is retained from before, and what joined servers hear."""

import json
from types import SimpleNamespace

from broker.bridge.joined import JoinedServer
from broker.config.joins import JoinSection
from broker.core.effects import Publication, Publish
from broker.driver.mqtt_face import Delivery


class Server:
    """Stands for the MQTT face; `said` is what was published there."""

    def __init__(self, *topics):
        self.topics = topics
        self.said = []

    def retained(self, topic_filter):
        assert topic_filter == "hw/status/+"
        return [SimpleNamespace(topic=topic) for topic in self.topics]

    def publish(self, topic, payload, qos, retain, properties):
        self.said.append((topic, json.loads(payload), qos, retain))


def test_what_was_told_of_others_before_a_process_began_is_old():
    server = Server("hw/status/b1", "hw/status/b2", "hw/status/me")
    Delivery(server, "hw").others_are_lost("me", 17)
    lost = {"state": "lost", "at": 17}
    assert server.said == [("hw/status/b1", lost, 1, True), ("hw/status/b2", lost, 1, True)]


def test_a_joined_server_hears_of_each_broker_from_itself():
    said = []
    join = SimpleNamespace(address="there", publish=said.append)
    way = JoinedServer(join, JoinSection(prefix="hw"), "client", "me")
    states = [Publication(f"status/{name}", b"{}", retain=True) for name in ("b1", "me", "men")]
    way.publish(Publish((*states, Publication("late/Temp", b"{}"))))
    assert [one.topic for one in said] == ["hw/status/me", "hw/late/Temp"]
