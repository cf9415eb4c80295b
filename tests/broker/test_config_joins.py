"""The sections of joined servers: any number, each understood whole or refused with its place."""

import pytest

from broker.config import ConfigError, load
from broker.config.joins import JOINS_MAX, JoinSection
from broker.config.show import HIDDEN, as_toml, page, shown

SECRET = "sesame-in-the-hall"


def loaded(tmp_path, text, **sources):
    path = tmp_path / "site.toml"
    path.write_text(text)
    flags = {"mqtt.port": "1999", **sources.pop("flags", {})}  # else it has that of a join
    return load(path, flags=flags, **sources)


def problems(tmp_path, text, **sources):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, **sources)
    assert SECRET not in str(caught.value)
    return [one.replace(f"{tmp_path}/", "") for one in caught.value.problems]


def test_without_such_a_section_no_server_is_joined():
    assert load().config.joins == {}


def test_servers_come_in_the_order_of_the_file_each_with_its_defaults(tmp_path):
    config = loaded(tmp_path, '[joins.yard]\nport = 1884\n[joins.hall]\nhost = "hall"\n').config
    assert list(config.joins) == ["yard", "hall"]
    assert config.joins == {"yard": JoinSection(port=1884), "hall": JoinSection(host="hall")}


def test_environment_and_flags_override_and_may_bring_a_server_of_their_own(tmp_path):
    environ = {"HEADWATER__JOINS__HALL__PORT": "2", "HEADWATER__JOINS__BACK_YARD__PORT": "3"}
    flags = {"joins.hall.port": "4", "joins.attic.host": "a"}
    config = loaded(tmp_path, "[joins.hall]\nport = 1\n", environ=environ, flags=flags).config
    assert {name: one.port for name, one in config.joins.items()} == {
        "hall": 4,
        "attic": 1883,
        "back_yard": 3,
    }


def test_paths_are_relative_to_the_file(tmp_path):
    text = '[joins.hall]\nuser = "a"\npassword_file = "secret"\ntls = true\ntls_ca = "ca.pem"\n'
    (one,) = loaded(tmp_path, text).config.joins.values()
    assert (one.password_file, one.tls_ca) == (f"{tmp_path}/secret", f"{tmp_path}/ca.pem")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[joins]\nhost = 1", "site.toml:2:1: each server has a section of its own"),
        ("joins = 1", "site.toml:1:1: each server has a section of its own"),
        ("[joins.Hall]\n", "site.toml:1:1: the name `Hall` will not do, expected a small letter"),
        ("[joins.a__b]\n", "site.toml:1:1: the name `a__b` will not do"),
        ("[joins.hall]\nhots = 1", "[joins.hall] has no key `hots`; did you mean `host`?"),
        ("[joins.hall]\nport = 0", "site.toml:2:1: joins.hall.port: found 0, expected a whole"),
        ('[joins.hall]\nprotocol = "4"', 'found "4", expected one of "5", "3.1.1"'),
        ('[joins.hall]\nprefix = "a/+"', "expected a topic without wildcards"),
        ('[joins.hall]\nhost = ""', "found an empty text"),
        ('[joins.hall]\ntls_cert = "a"\ntls = true', "a certificate needs its key"),
        ('[joins.hall]\ntls_key = "a"', "a key needs its certificate"),
        ('[joins.hall]\ntls_ca = "a"', "of no use without TLS"),
        (f'[joins.hall]\npassword = "{SECRET}"', "joins.hall.password: a password needs its user"),
        (
            f'[joins.hall]\nuser = "a"\npassword = "{SECRET}"\npassword_file = "b"',
            "the password is set twice",
        ),
        (
            '[joins.a]\nclient_id = "x"\n[joins.b]\nclient_id = "x"\n',
            "site.toml:4:1: joins.b.client_id: [joins.a] is at the same place",
        ),
        ("[joins.hall]\nport = 1999", "joins.hall.port: this is the broker's own MQTT face"),
        ("[joins.hall]\nuser = 'a'\npassword = 12345", "found a whole number, expected a text"),
        ("".join(f"[joins.j{n}]\nport = {n + 1}\n" for n in range(JOINS_MAX + 1)), "more than 16"),
    ],
)
def test_what_will_not_do_is_refused_with_its_place(tmp_path, text, says):
    (problem,) = problems(tmp_path, text)
    assert problem.startswith("site.toml:")
    assert says in problem
    assert "12345" not in problem


def test_a_password_never_stands_in_the_argument_list(tmp_path):
    text = '[joins.hall]\nuser = "a"\n'
    (problem,) = problems(tmp_path, text, flags={"joins.hall.password": SECRET})
    assert problem.startswith("--set joins.hall.password: every user of this machine")
    environ = {"HEADWATER__JOINS__HALL__PASSWORD": SECRET}
    (one,) = loaded(tmp_path, text, environ=environ).config.joins.values()
    assert one.password == SECRET


def test_what_is_shown_can_be_read_again_and_hides_the_password(tmp_path):
    text = f'[joins.hall]\nuser = "a"\npassword = "{SECRET}"\n'
    told = as_toml(shown(loaded(tmp_path, text)), origins=True)
    assert SECRET not in told
    assert f'password = "{HIDDEN}"' in told
    again = loaded(tmp_path, told).config.joins["hall"]
    assert again == JoinSection(user="a", password=HIDDEN)


def test_the_page_has_every_key():
    (_, _, section) = page().partition("## [joins.NAME]")
    for name in JoinSection.__struct_fields__:
        assert f"| `{name}` |" in section
