"""Brokers that find each other on a segment, which is played: ring, bounds, tags, faults."""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import subprocess
import sys

import pytest

from broker.config.links import LinksSection
from broker.links import discovery as discoveries
from broker.links.announcement import (
    LABEL_BYTES_MAX,
    TAGS_MAX,
    Announcement,
    label_of,
    network_tags,
    own_addresses,
    properties_of,
    reachable,
    tags_of,
)
from broker.links.discovery import ANNOUNCEMENTS_MAX, Announcements, SegmentError
from broker.links.securing import LinkConfigError, Security, load_security
from broker.links.seeds import Seeds
from broker.links.trials import FIRST_S, LAST_S, PROOF_S, Trials
from headwater.cli import main
from tests.broker.links.faces import PATIENCE_S, face, until
from tests.conftest import require_program
from tests.loops import RUNNERS

OLD, NEW, OTHER = "correct-horse-battery", "staple-of-another-year", "a-neighbour-s-own-secret"


@pytest.fixture(params=sorted(RUNNERS))
def run(request):
    """Runs a coroutine function on each of the loops."""
    return lambda course: RUNNERS[request.param](course())


def secret(tmp_path, *lines):
    path = tmp_path / "-".join(lines)
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return str(path)


def at(*texts):
    return [ipaddress.ip_interface(text) for text in texts]


class Air:
    """A segment that all of its ends are on; `fault` makes it unusable."""

    def __init__(self):
        self.ends = []
        self.fault = ""
        self.on = at("127.0.0.1/8")

    def end(self):
        return AirEnd(self)

    def spread(self, own, before=None):
        for end in self.ends:
            if before is not None:
                end.receive(before.label, None)
            if own is not None:
                end.receive(own.label, own)


class AirEnd:
    """What one broker has of the air."""

    def __init__(self, air):
        self.air = air
        self.own = None
        self.receive = None

    def interfaces(self):
        return list(self.air.on)

    async def open(self, interfaces, own, receive):
        if self.air.fault:
            raise SegmentError(self.air.fault)
        self.receive = receive
        for end in self.air.ends:
            if end.own is not None:
                receive(end.own.label, end.own)
        self.air.ends.append(self)
        self.own = own
        self.air.spread(own)

    async def announce(self, own):
        self.own = own
        self.air.spread(own)

    async def close(self):
        if self in self.air.ends:
            self.air.ends.remove(self)
            self.air.spread(None, self.own)
        self.own = None


@pytest.fixture
def air(monkeypatch):
    made = Air()
    monkeypatch.setattr("broker.links.face.segment", made.end)
    monkeypatch.setattr("broker.links.seeds.LOOK_S", 0.05)
    return made


def linked(*brokers):
    names = {broker.links.me for broker in brokers}
    return all(broker.up(name) for broker in brokers for name in names - {broker.links.me})


# --- brokers on a segment ---------------------------------------------------------------------


def test_brokers_of_one_network_link_and_those_of_another_are_not_even_asked(run, tmp_path, air):
    async def course():
        mine = {"discover": True, "secret_file": secret(tmp_path, OLD)}
        theirs = mine | {"secret_file": secret(tmp_path, OTHER)}
        async with face("a", **mine) as a, face("b", **mine) as b, face("x", **theirs) as x:
            async with face("c", **mine) as c:
                await until(lambda: linked(a, b, c))
                assert a.discovery.status() == {"found": 2, "others": 1, "reason": ""}
            assert x.discovery.status()["others"] == 2, "c has said goodbye"
            assert x.status() == {}
            assert not x._sockets

    run(course)


def test_a_broker_is_found_while_its_network_gets_another_secret(run, tmp_path, air):
    """One after the other; at each moment some have both secrets, and some still have one."""

    async def course():
        settings = {"discover": True, "secret_file": secret(tmp_path, OLD)}
        async with face("a", **settings) as a, face("b", **settings) as b:
            await until(lambda: linked(a, b))
            both = load_security(LinksSection(secret_file=secret(tmp_path, NEW, OLD)))
            b.secure(both)
            await until(lambda: len(air.ends[1].own.tags) == 2)
            async with face("c", discover=True, secret_file=secret(tmp_path, NEW)) as c:
                await until(lambda: linked(b, c))
                assert not a.up("c")
                a.secure(both)
                await until(lambda: linked(a, b, c))

    run(course)


def test_seeds_and_what_is_discovered_are_one_ring(run, tmp_path, air):
    """A broker that announces nothing is found at a seed address, by who discovers others too."""

    async def course():
        path = secret(tmp_path, OLD)
        async with (
            face("a", secret_file=path) as a,
            face("b", discover=True, secret_file=path) as b,
        ):
            seeds = f"127.0.0.1:{a.port}"
            async with face("c", discover=True, secret_file=path, seeds=seeds) as c:
                await until(lambda: c.up("a") and c.up("b") and b.up("c"))
                assert sorted(c.status()) == ["a", "b"]
                assert not a.up("b")

    run(course)


def test_a_segment_that_fails_is_told_once_and_tried_again(run, tmp_path, air, caplog, monkeypatch):
    monkeypatch.setattr(discoveries, "CHECK_S", 0.02)
    air.fault = "multicast is not possible: no such device"

    async def course():
        mine = {"discover": True, "secret_file": secret(tmp_path, OLD)}
        async with face("a", **mine) as a, face("b", **mine) as b:
            await until(lambda: a.discovery.status()["reason"] == air.fault)
            await asyncio.sleep(0.2)
            air.fault = ""
            await until(lambda: linked(a, b))
            assert a.discovery.status()["reason"] == ""

    with caplog.at_level(logging.INFO):
        run(course)
    line = "brokers on this segment cannot be discovered: multicast is not possible: no such device"
    assert caplog.messages.count(line) == 2, "once for each of the two"


def test_other_addresses_of_the_machine_are_announced_when_it_has_them(
    run, tmp_path, air, monkeypatch
):
    monkeypatch.setattr(discoveries, "CHECK_S", 0.02)
    air.on = []

    async def course():
        mine = {"discover": True, "secret_file": secret(tmp_path, OLD)}
        async with face("a", **mine) as a, face("b", **mine) as b:
            await asyncio.sleep(0.1)
            assert a.status() == {}
            air.on = at("127.0.0.1/8")
            await until(lambda: linked(a, b))

    run(course)


@pytest.mark.parametrize("steps", range(4))
def test_it_stops_also_in_the_moment_in_which_something_else_happens(run, air, steps):
    """A cancellation that comes together with what is waited for must not be lost."""

    async def course():
        made = discoveries.Discovery("a", ("aaaa",), air.end())
        made.start([], 0)
        await asyncio.sleep(0.01)
        made.retag(("bbbb",))
        for _ in range(steps):
            await asyncio.sleep(0)
        stopping = asyncio.create_task(made.stop())
        done, _ = await asyncio.wait({stopping}, timeout=PATIENCE_S)
        assert done

    run(course)


# --- strangers --------------------------------------------------------------------------------


class FakeFace:
    """A face at which links come up with `real` brokers alone."""

    port = 1

    def __init__(self, *real):
        self.real = real
        self.dialled = {}
        self.settings = LinksSection()

    def up(self, peer):
        return peer in self.real and peer in self.dialled

    def dial(self, peer, where):
        self.dialled[peer] = where

    async def leave(self, peer):
        del self.dialled[peer]


def looking(monkeypatch, answers, *real):
    """Seeds that find these names at discovered addresses, and a record of whom they asked."""
    made = FakeFace(*real)
    seeds = Seeds(made, [], lambda: list(answers))
    asked = []

    async def ask(where):
        asked.append(where)
        if not answers[where]:
            raise ConnectionRefusedError
        return answers[where]

    monkeypatch.setattr(seeds, "_asked", ask)
    return made, seeds, asked


def test_strangers_who_answer_do_not_keep_brokers_from_each_other(monkeypatch):
    """They have copied the tag, have the next places on the ring, and prove nothing."""
    answers = {(f"127.0.0.{n}", 5): name for n, name in enumerate(["s1", "s2", "b", "c"], 2)}
    made, seeds, asked = looking(monkeypatch, answers, "b", "c")
    monkeypatch.setattr("broker.links.trials.PROOF_S", 0.0)

    async def course():
        await seeds._look()
        assert sorted(made.dialled) == ["s1", "s2"]
        await seeds._look()
        await seeds._look()
        assert sorted(made.dialled) == ["b", "c"]
        asked.clear()
        for _ in range(5):
            await seeds._look()
        assert sorted(made.dialled) == ["b", "c"]
        assert asked == [], "strangers wait for their turn, and who is linked need not be asked"

    asyncio.run(course())


def test_addresses_where_nobody_answers_are_asked_a_few_at_a_time_and_not_again(monkeypatch):
    answers = {(f"127.0.1.{n}", 5): "" for n in range(1, 41)} | {("127.0.2.1", 5): "b"}
    made, seeds, asked = looking(monkeypatch, answers, "b")

    async def course():
        counts = []
        for _ in range(4):
            asked.clear()
            await seeds._look()
            counts.append(len([where for where in asked if not answers[where]]))
        assert counts == [16, 16, 8, 0]
        assert sorted(made.dialled) == ["b"]

    asyncio.run(course())


def test_an_address_is_tried_ever_more_seldom_and_anew_once_it_has_proven_itself():
    trials, where, now_s = Trials(), ("10.0.0.2", 1889), 100.0
    waits = []
    for _ in range(6):
        trials.fail(where, now_s)
        wait_s = next(s for s in range(1, 1000) if trials.is_due(where, now_s + s))
        waits.append(wait_s)
        now_s += wait_s
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (FIRST_S, LAST_S)
    trials.succeed(where)
    trials.fail(where, now_s)
    assert trials.is_due(where, now_s + FIRST_S)


def test_a_link_that_does_not_come_up_is_a_failure_after_a_while():
    trials, where = Trials(), ("10.0.0.2", 1889)
    trials.await_proof(where, 0.0)
    trials.await_proof(where, PROOF_S - 0.1)
    assert trials.is_due(where, PROOF_S - 0.1)
    trials.await_proof(where, PROOF_S)
    assert not trials.is_due(where, PROOF_S)


def test_who_is_announced_again_is_not_tried_earlier_and_nobody_is_remembered_for_ever():
    trials, where = Trials(), ("10.0.0.2", 1889)
    trials.fail(where, 0.0)
    trials.prune([], FIRST_S - 1)
    assert not trials.is_due(where, FIRST_S - 1)
    trials.prune([], FIRST_S)
    assert len(trials) == 0


def test_what_strangers_announce_takes_no_places_of_this_network():
    ours = Announcements(("aaaa",))
    for n in range(ANNOUNCEMENTS_MAX + 50):
        ours.take(f"x{n}", Announcement(f"x{n}", ("10.0.0.9",), n, ("bbbb",)))
    assert len(ours.rows()) == ANNOUNCEMENTS_MAX
    for n in range(ANNOUNCEMENTS_MAX + 50):
        ours.take(f"b{n}", Announcement(f"b{n}", ("10.0.0.9",), n, ("aaaa",)))
    assert len(ours.rows()) == ANNOUNCEMENTS_MAX
    assert all(map(ours.ours, ours.rows()))
    ours.take("b0", None)
    ours.take("late", Announcement("late", ("10.0.0.9",), 1, ("aaaa",)))
    assert "late" in {row.label for row in ours.rows()}


# --- what is announced ------------------------------------------------------------------------


def test_a_tag_is_16_bits_of_each_secret():
    """So short that a guess at the secret cannot be checked by it; the docs name the digest."""
    both = network_tags(Security((NEW.encode(), OLD.encode())))
    expected = [
        hmac.new(text.encode(), b"headwater discovery 1", hashlib.sha256).digest()[:2].hex()
        for text in (NEW, OLD)
    ]
    assert list(both) == expected
    assert set(network_tags(Security((OLD.encode(),)))) < set(both)
    assert set(both).isdisjoint(network_tags(Security((OTHER.encode(),))))


def test_where_certificates_alone_secure_links_the_authority_makes_the_tag(tmp_path):
    openssl = require_program("openssl")

    def authority(name):
        subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
                *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            ],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
        return (tmp_path / f"{name}.pem").read_text()

    def tags(*certificates):
        path = tmp_path / "authorities.pem"
        path.write_text("".join(certificates))
        return set(network_tags(load_security(LinksSection(tls_ca=str(path)))))

    ours, theirs = authority("ours"), authority("theirs")
    assert len(tags(ours)) == len(tags(theirs)) == 1
    assert tags(ours).isdisjoint(tags(theirs))
    assert tags(ours, theirs) == tags(ours) | tags(theirs)


def test_the_txt_record_says_a_format_and_tags_and_is_read_with_care():
    assert properties_of(["12ab", "ffff"]) == {b"txtvers": b"1", b"net": b"12ab,ffff"}
    assert tags_of({b"txtvers": b"1", b"net": b"12ab,ffff"}) == ("12ab", "ffff")
    for strange in (
        {},
        {b"txtvers": b"2", b"net": b"12ab"},
        {b"txtvers": b"1", b"net": None},
        {b"txtvers": b"1", b"net": b"\xff\xff,12AB,12abc,"},
    ):
        assert tags_of(strange) == ()
    assert len(tags_of({b"txtvers": b"1", b"net": b"0000," * 50})) == TAGS_MAX


def test_a_label_is_the_name_as_far_as_dns_has_room():
    assert label_of("roof") == "roof"
    assert label_of("pi.3") == "pi-3", "a dot would end the label"
    long_ones = [label_of("x" * 63 + end) for end in "ab"]
    assert all(len(label.encode()) == LABEL_BYTES_MAX for label in long_ones)
    assert len(set(long_ones)) == 2


def test_a_broker_announces_where_others_reach_its_listener():
    machine = at("10.0.0.2/24", "192.168.1.2/24", "fd00::2/64")
    assert own_addresses(["0.0.0.0"], machine) == ("10.0.0.2", "192.168.1.2")
    assert own_addresses(["::"], machine) == ("fd00::2",)
    assert own_addresses(["192.168.1.2"], machine) == ("192.168.1.2",)
    assert own_addresses([], machine) == ()


@pytest.mark.parametrize(
    ("announced", "port", "asked"),
    [
        (["10.0.0.3"], 1889, ["10.0.0.3"]),
        (["10.0.0.2", "172.17.0.1"], 1889, []),  # this broker
        (["10.0.0.2", "172.17.0.1"], 1890, ["10.0.0.2", "172.17.0.1"]),  # another one beside it
        (["10.0.0.3", "172.17.0.1"], 1889, ["10.0.0.3"]),  # a bridge that every machine has
        (["192.168.7.7", "172.17.0.1"], 1889, []),  # on no segment of this machine
        (["8.8.8.8", "fd00::3", "::1"], 1889, ["fd00::3"]),
    ],
)
def test_only_addresses_on_the_segment_are_asked(announced, port, asked):
    machine = at("10.0.0.2/24", "172.17.0.1/16", "fd00::2/64")
    announcement = Announcement("b", tuple(announced), port, ())
    assert [host for host, _ in reachable(announcement, machine, 1889)] == asked


# --- the package ------------------------------------------------------------------------------


def test_without_the_package_the_start_is_refused_with_what_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    monkeypatch.delitem(sys.modules, "broker.links.multicast", raising=False)

    async def course():
        async with face("a", discover=True, secret_file=secret(tmp_path, OLD)):
            pytest.fail("it has started")

    with pytest.raises(LinkConfigError, match=r"links\.discover: .*headwater\[discovery\]"):
        asyncio.run(course())


def test_the_package_is_loaded_by_nobody_who_does_not_discover():
    script = "import broker.links, sys; print({'zeroconf', 'ifaddr'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


# --- the command ------------------------------------------------------------------------------


def test_the_command_lists_who_announces_himself(tmp_path, monkeypatch, capsys):
    air = Air()
    monkeypatch.setattr(discoveries, "segment", air.end)
    for name, text, host in (("roof", OLD, "10.0.0.2"), ("mill\x1b", OTHER, "10.0.0.9")):
        end = air.end()
        end.receive = lambda *_: None
        tags = network_tags(Security((text.encode(),)))
        end.own = Announcement(name, (host, "fd00::2"), 1889, tags)
        air.ends.append(end)
    assert main(["discover", "--wait", "0.01"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "mill\\x1b  10.0.0.9 fd00::2  1889  -",
        "roof      10.0.0.2 fd00::2  1889  -",
    ]
    path = tmp_path / "roof.toml"
    path.write_text(f'[links]\nsecret_file = "{secret(tmp_path, OLD)}"\n')
    for words in (["--config", str(path)], ["--secret-file", secret(tmp_path, OLD)]):
        assert main(["discover", "--wait", "0.01", *words]) == 0
        networks = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]]
        assert networks == ["another", "this"]


def test_the_command_says_when_there_is_nobody_or_it_cannot_look(tmp_path, monkeypatch, capsys):
    air = Air()
    monkeypatch.setattr(discoveries, "segment", air.end)
    assert main(["discover", "--wait", "0.01"]) == 1
    assert "no broker has announced itself" in capsys.readouterr().err
    assert main(["discover", "--wait", "0.01", "--json"]) == 1
    assert capsys.readouterr().out == '{"brokers": []}\n'
    air.fault = "multicast is not possible: no such device"
    assert main(["discover"]) == 1
    assert air.fault in capsys.readouterr().err
    path = tmp_path / "roof.toml"
    path.write_text("")
    assert main(["discover", "--config", str(path)]) == 2
    assert "links.secret_file" in capsys.readouterr().err
