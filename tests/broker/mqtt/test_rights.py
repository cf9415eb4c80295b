"""Who may publish and subscribe where: rights, their file, and clients that meet them."""

import pytest

from broker.config import ConfigError
from broker.config.rights import load_rights
from broker.mqtt import packets as p
from broker.mqtt.application import ClientInfo
from broker.mqtt.reasons import Reason
from broker.mqtt.rights import Right, Rights
from tests.broker.mqtt.world import World

BOTH = ("publish", "subscribe")


def asks(rights, topic, action="publish", user="ann", client="c1"):
    return rights(ClientInfo(client, user, "test:1", 5), topic, action)


def test_the_first_right_that_fits_decides_and_none_denies():
    rights = Rights(
        [
            Right(False, BOTH, ("home/secret/#",), users=("ann",)),
            Right(True, ("subscribe",), ("home/#",)),
            Right(True, ("publish",), ("home/%u/+", "dev/%c")),
        ]
    )
    assert asks(rights, "home/ann/t")
    assert asks(rights, "dev/c1")
    assert not asks(rights, "dev/c2")
    assert not asks(rights, "home/ben/t")
    assert not asks(rights, "home/ann/t", user=None)
    assert asks(rights, "home/x", "subscribe")
    assert not asks(rights, "elsewhere", "subscribe")
    assert not asks(Rights([]), "a")


def test_no_wildcard_reaches_around_a_right():
    rights = Rights([Right(False, BOTH, ("home/secret/#",)), Right(True, BOTH, ("home/#",))])
    for wanted in ("#", "+/secret", "home/secret", "home/secret/#"):
        assert not asks(rights, wanted, "subscribe"), wanted
    for wanted in ("home/#", "home/+", "home/open/+"):  # see test_narrowing
        assert asks(rights, wanted, "subscribe")
    assert asks(rights, "home/open", "receive")
    assert not asks(rights, "home/secret/x", "receive")
    narrow = Rights([Right(True, BOTH, ("home/+/t",))])
    assert asks(narrow, "home/+/t", "subscribe")
    for wanted in ("home/#", "home/+/+", "+/+/t", "$share/g/home/+/t"):
        assert not asks(narrow, wanted, "subscribe"), wanted
    everything = Rights([Right(True, BOTH, ("#",))])
    assert asks(everything, "a/b")
    assert not asks(everything, "$SYS/x", "subscribe")


@pytest.mark.parametrize("name", ["+", "#", "a/b", "a/#", ""])
def test_a_name_cannot_choose_what_a_right_says(name):
    """A client identifier of `#` must not become a wildcard, nor one with `/` two levels."""
    rights = Rights([Right(True, BOTH, ("dev/%c/%u",))])
    assert not asks(rights, f"dev/{name}/ann", "subscribe", client=name)
    assert not asks(rights, f"dev/c1/{name}", "subscribe", user=name)
    assert not asks(rights, "dev/x/ann", client=name)


def test_rights_are_of_users_and_clients():
    rights = Rights(
        [
            Right(True, BOTH, ("u",), users=("ann", "ben")),
            Right(True, BOTH, ("c",), clients=("c1",)),
            Right(True, BOTH, ("x",), users=("ann",), clients=("c1",)),
        ]
    )
    seen = {
        (user, client): [topic for topic in "ucx" if asks(rights, topic, "publish", user, client)]
        for user in ("ann", None)
        for client in ("c1", "c2")
    }
    assert seen == {
        ("ann", "c1"): ["u", "c", "x"],
        ("ann", "c2"): ["u"],
        (None, "c1"): ["c"],
        (None, "c2"): [],
    }


@pytest.mark.parametrize("qos", [0, 1])
def test_a_publisher_that_may_not_is_told_and_nobody_gets_the_message(qos):
    world = World(authorize=Rights([Right(True, BOTH, ("open",)), Right(True, BOTH[1:], ("#",))]))
    watcher = world.client(p.V5, "w")
    assert watcher.subscribe("#", "open") == (1, 1)
    client = world.client(p.V5)
    client.publish("closed", b"x", qos=qos, retain=True)
    assert client.take() == ([p.Puback(1, Reason.NOT_AUTHORIZED)] if qos else [])
    assert client.closed is None
    assert watcher.take() == []
    assert world.hub.retained("#") == []
    assert world.hub.counters.refused == {"publish_not_authorized": 1}


def test_a_file_of_rights_is_read(tmp_path):
    path = tmp_path / "rights.toml"
    path.write_text(
        """
        [[rights]]   # the pumps speak for themselves
        allow = "publish"
        topics = "headwater/events/+/%u"
        users = ["pump-7", "pump-8"]
        [[rights]]
        deny = "both"
        topics = ["headwater/submit/#", "headwater/cancel/#"]
        clients = "guest"
        [[rights]]
        allow = "both"
        topics = ["#"]
        """
    )
    rights = load_rights(str(path))
    assert asks(rights, "headwater/events/T/pump-7", user="pump-7")
    assert asks(rights, "headwater/submit/ann/1")
    assert not asks(rights, "headwater/submit/ann/1", client="guest")
    assert load_rights("") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[rights]\nallow = 'both'", "write [[rights]] above each right"),
        ("[[right]]\nallow = 'both'", "no such table `right`"),
        ("rights = [3]", "right 1: it is no table"),
        ("[[rights]]\nallow = 'both'", "needs `topics`"),
        ("[[rights]]\ntopics = ['a']", "one of `allow` and `deny`"),
        ("[[rights]]\nallow = 'both'\ndeny = 'both'\ntopics = 'a'", "one of `allow` and `deny`"),
        ("[[rights]]\nallow = 'read'\ntopics = 'a'", '"publish", "subscribe" and "both"'),
        ("[[rights]]\nallow = 3\ntopics = 'a'", '"publish", "subscribe" and "both"'),
        ("[[rights]]\nallow = 'both'\ntopics = 'a/#/b'", "a wildcard is not a level of its own"),
        ("[[rights]]\nallow = 'both'\ntopics = 'a/x%u'", "`%u` is not a level of its own"),
        ("[[rights]]\nallow = 'both'\ntopics = 'a'\nusers = []", "`users` is a text or a list"),
        ("[[rights]]\nallow = 'both'\ntopics = 'a'\nuser = 'b'", "did you mean `users`?"),
        ("[[rights]", "not TOML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_what_is_wrong(text, says, tmp_path):
    path = tmp_path / "rights.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_rights(str(path))
    (problem,) = caught.value.problems
    assert problem.startswith(str(path))
    assert says in problem


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: no such file"):
        load_rights(str(tmp_path / "none.toml"))
