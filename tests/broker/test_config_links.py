"""Links to other brokers in the configuration: peers, and that no stranger comes in."""

import pytest

from broker.config import ConfigError, load

SECURED = "set `secret_file`, or `tls_cert`, `tls_key` and `tls_ca`,"


def problems(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    return [one.replace(f"{path}", "site.toml") for one in caught.value.problems]


def test_peers_are_a_table_in_a_file_and_a_list_elsewhere(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text('[links.peers]\nroof = "127.0.0.1:1890"\ncellar = "[::1]:1891"\n')
    expected = {"roof": "127.0.0.1:1890", "cellar": "[::1]:1891"}
    assert load(path).config.links.peers == expected
    listed = "roof=127.0.0.1:1890, cellar=[::1]:1891"
    assert load(None, {"HEADWATER__LINKS__PEERS": listed}).config.links.peers == expected
    assert load(None, {}, {"links.peers": listed}).config.links.peers == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[links.peers]\nroof = "x"', ["site.toml:2:1: ", 'found "x"', "10.0.0.2:1889"]),
        ('[links.peers]\nroof = "x:0"', ["site.toml:2:1: ", 'found "x:0"']),
        ('[links.peers]\nroof = "x:70000"', ["site.toml:2:1: "]),
        ("[links.peers]\nroof = 5", ["site.toml:2:1: ", "a whole number (5)"]),
        ('[links.peers]\n"a b" = "x:1"', ["site.toml:2:1: ", "the broker name `a b`"]),
        ("[links]\npeers = 5", ["site.toml:2:1: links.peers: ", "a table of broker name"]),
        ('[links]\nseeds = "x"', ["links.seeds: ", 'found "x"', "`broker:1889`"]),
        ('[links]\nseeds = "broker:1889"', ["links.seeds: ", "another machine", SECURED]),
        ('[links]\nhost = "0.0.0.0"', ["links.host: ", "from other machines", SECURED]),
        ('[links.peers]\nroof = "10.0.0.2:1889"', ["`roof` is on another machine", SECURED]),
        ('[links.peers]\nbroker = "127.0.0.1:1"', ["this broker's own name"]),
        (
            '[links]\nhost = "127.0.0.1"\npeers = {roof = "127.0.0.1:1889"}',
            ["`roof` at 127.0.0.1:1889 would be this broker itself"],
        ),
        ('[links]\ntls_cert = "a"', ["links.tls_cert: a certificate needs its key"]),
        ('[links]\ntls_key = "a"', ["links.tls_key: a key needs its certificate"]),
        ('[links]\nhost = "127.0.0.1"\ntls_ca = "a"', ["needs a certificate"]),
        (
            '[links]\ntls_cert = "a"\ntls_key = "b"\npeers = {roof = "127.0.0.1:1"}',
            ["the peers' certificates could not be checked"],
        ),
        (
            (
                '[links]\nhost = "0.0.0.0"\ntls_cert = "a"\ntls_key = "b"\ntls_ca = "c"\n'
                'tls_client_certificates = "optional"'
            ),
            ["from other machines"],
        ),
        ("[links]\ndiscover = true", ["links.discover: ", "announces himself", SECURED]),
        (
            '[links]\nhost = "127.0.0.1"\nsecret_file = "s"\ndiscover = true',
            ["links.discover: ", '"127.0.0.1"', "this machine alone", 'host = "0.0.0.0"'],
        ),
        (
            '[links]\ndiscover = true\nsecret_file = "s"\ntls_cert = "a"\ntls_key = "b"',
            ["links.tls_cert: ", "could not be checked"],
        ),
        (
            '[links]\nstand_in = "*"\nstand_in_lease_ms = 999',
            ["links.stand_in_lease_ms: ", "999 ms lapse", "set 1000 or more"],
        ),
        ("[links]\nstand_in_lease_ms = 1000", ["links.stand_in_lease_ms: ", "nobody stands in"]),
        ("[link_limits]\nsilence_ms = 100", ["silence_ms must be more than heartbeat_ms"]),
    ],
)
def test_what_will_not_do_is_refused_with_its_place_and_a_sentence(tmp_path, text, says):
    (problem,) = problems(tmp_path, text)
    for part in says:
        assert part in problem


@pytest.mark.parametrize(
    "text",
    [
        '[links]\nhost = "0.0.0.0"\nsecret_file = "s"\nseeds = "broker:1889, [fd00::1]:1889"',
        '[links]\nhost = "0.0.0.0"\nsecret_file = "s"\ndiscover = true',
        '[links]\nhost = "0.0.0.0"\nsecret_file = "s"\npeers = {roof = "10.0.0.2:1889"}',
        (
            '[links]\nhost = "0.0.0.0"\ntls_cert = "a"\ntls_key = "b"\ntls_ca = "c"\n'
            'peers = {roof = "10.0.0.2:1889"}'
        ),
    ],
)
def test_secured_links_may_leave_the_machine(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(text)
    assert load(path).config.links.host == "0.0.0.0"


def test_peers_in_the_environment_that_cannot_be_read_are_refused(tmp_path):
    for text in ("roof", "roof=10.0.0.2:1,roof=10.0.0.3:1", "=x:1"):
        with pytest.raises(ConfigError, match=r"HEADWATER__LINKS__PEERS: "):
            load(None, {"HEADWATER__LINKS__PEERS": text})


def test_a_setting_of_an_earlier_version_is_refused_with_what_has_come_in_its_place(tmp_path):
    file = tmp_path / "broker.toml"
    file.write_text("[links]\nfirst_wait_ms = 500\n")
    says = r"2:1: .*`first_wait_ms` any more: .* all brokers have answered; remove it"
    with pytest.raises(ConfigError, match=says):
        load(file)
    with pytest.raises(ConfigError, match=r"first_wait_ms: no such key: .*all brokers"):
        load(None, flags={"links.first_wait_ms": "500"})


@pytest.mark.parametrize("lease_ms", [0, 1_000])
def test_a_lease_is_none_or_long_enough_for_an_answer(tmp_path, lease_ms):
    path = tmp_path / "site.toml"
    path.write_text(f'[links]\nstand_in = "*"\nstand_in_lease_ms = {lease_ms}\n')
    assert load(path).config.links.stand_in_lease_ms == lease_ms
