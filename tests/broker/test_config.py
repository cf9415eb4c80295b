"""A configuration is understood whole or refused with every place and the way out."""

import re
from pathlib import Path

import pytest

from broker.config import Config, ConfigError, load
from broker.config.show import as_toml, page, shown
from broker.config.table import settings
from broker.credentials import hash_password

HASH = hash_password("sesame")


@pytest.fixture
def site(tmp_path: Path):
    """Writes `site.toml` and gives its path."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "site.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def problems(path: Path | None, **sources) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, **sources)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [p.replace(f"{path}", "site.toml") for p in caught.value.problems]


def test_without_any_source_every_setting_has_its_default():
    assert load().config == Config()
    assert {origin.kind for origin in load().origins.values()} == {"default"}


def test_the_last_of_file_environment_and_flag_wins(site):
    path = site("[mqtt]\nport = 1\n[http]\nport = 1\n[intake]\nlateness_ms = 1\n")
    environ = {"HEADWATER__HTTP__PORT": "2", "HEADWATER__INTAKE__LATENESS_MS": "2", "HOME": "x"}
    loaded = load(path, environ, {"intake.lateness_ms": "3"})
    config = loaded.config
    assert (config.mqtt.port, config.http.port, config.intake.lateness_ms) == (1, 2, 3)
    origins = {row.key: row.origin for row in shown(loaded)}
    assert origins["mqtt.port"] == f"{path}:2"
    assert origins["http.port"] == "env HEADWATER__HTTP__PORT"
    assert origins["intake.lateness_ms"] == "flag --set intake.lateness_ms"
    assert origins["mqtt.host"] == "default"


@pytest.mark.parametrize("row", settings(), ids=lambda row: row.key)
def test_every_setting_can_be_set_from_file_environment_and_flag(row, site, tmp_path):
    """By its default, which every source must be able to say."""
    expected = row.default
    text = as_toml([r for r in shown(load()) if r.key == row.key], origins=False)
    flag = "" if row.name == "peers" else str(row.default)
    for loaded, kind in (
        (load(site(text)), "file"),
        (load(None, {row.variable: flag}), "env"),
        (load(None, {}, {row.key: flag}), "flag"),
    ):
        found = getattr(getattr(loaded.config, row.section), row.name)
        if row.about.path and kind == "file" and found:
            found = str(Path(found).relative_to(tmp_path))
        assert found == expected
        assert type(found) is type(expected)
        assert loaded.origins[row.key].kind == kind


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[mqtt]\n\n  prot = 1", "3:3", "[mqtt] has no key `prot`; did you mean `port`?"),
        ("[mqqt]\nport = 1", "1:1", "no such section `mqqt`; did you mean `mqtt`?"),
        ("[mqtt]\nlateness_ms = 1", "2:1", "did you mean `intake.lateness_ms`?"),
        ("port = 1", "1:1", "belongs into a section: `mqtt.port` or `http.port`"),
        ("mqtt = 3", "1:1", "`mqtt` is a section: write [mqtt] above its keys"),
        ("[zzz]", "1:1", "no such section `zzz`"),
        ('[mqtt]\nport = "1883"', "2:1", 'a text ("1883"), expected a whole number from 0 to'),
        ("[mqtt]\nport = 1.5", "2:1", "a number with a fraction (1.5), expected a whole number"),
        ("[mqtt]\nport = true", "2:1", "a truth value (true), expected a whole number"),
        ("[mqtt]\nport = 65536", "2:1", "found 65536, expected a whole number from 0 to 65535"),
        ("[mqtt]\nport = -1", "2:1", "found -1, expected"),
        ("[mqtt]\nport = 1" + "0" * 5_000, "1:1", "not TOML: a number has too many digits"),
        ("[mqtt]\nport = 0x" + "f" * 5_000, "2:1", "more than 128 bits, expected a whole number"),
        ("[mqtt]\nhost = 0x" + "f" * 5_000, "2:1", "(a number of more than 128 bits), expected"),
        ("[mqtt]\nhost = 7", "2:1", "a whole number (7), expected a text in quotes"),
        ('[mqtt]\nhost = ""', "2:1", "found an empty text"),
        ("[mqtt]\nhost = 2026-01-01", "2:1", "a date or time"),
        ("[mqtt]\nhost = ['x']", "2:1", "found a list, expected"),
        ("[mqtt]\nusers = 'users.toml'", "2:1", "users stand in the file that `rights` under"),
        ("[mqtt]\nrights = 'rights.toml'", "2:1", "did you mean `broker.rights`?"),
        ('[mqtt]\nhost = "a\\u0000"', "2:1", "the character NUL"),
        ('[broker]\ndata_dir = "a\\u0000"', "2:1", "the character NUL"),
        ("[intake]\nrequire_timestamp = 1", "2:1", "expected true or false"),
        ('[log]\nlevel = "loud"', "2:1", 'found "loud", expected one of "debug", "info"'),
        ('[mqtt]\nprefix = "a/#"', "2:1", "a topic without wildcards"),
        ('[mqtt]\nprefix = "a/"', "2:1", "a topic without wildcards"),
        ('[broker]\nname = "a b"', "2:1", "a letter or digit"),
        ("[mqtt]\nport = = 1", "2:8", "not TOML: invalid value"),
        ("[mqtt]\nport = 1\nport = 2", "3:9", "not TOML"),
        ('[mqtt]\nhost = "', "2:9", "not TOML"),
        ("[mqtt]\ntls_cert = 'c'", "2:1", "a certificate needs its key; set `tls_key`"),
        ("[mqtt]\ntls_key = 'c'", "2:1", "set `tls_cert`"),
        ("[mqtt]\nplain = false", "2:1", "without TLS nobody could connect"),
        (b"[mqtt]\nhost = '\xff'", "2:1", "not UTF-8"),
        ("[mqtt]\nport = " + "[" * 5000, "1:1", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_what_would_be_right(site, text, line, says):
    (problem,) = problems(site(text))
    if "not TOML" in says:  # the column is tomllib's word, and differs between Pythons
        assert problem.startswith(f"site.toml:{line.split(':')[0]}:")
    else:
        assert problem.startswith(f"site.toml:{line}: ")
    assert says in problem
    assert re.match(r"site\.toml:\d+:\d+: ", problem)


def test_a_byte_order_mark_and_other_line_ends_are_no_fault(site):
    """As an editor on Windows may leave them; places stay what they are."""
    path = site(b"\xef\xbb\xbf[mqtt]\r\nport = 1999\r\n")
    assert load(path).config.mqtt.port == 1999
    (problem,) = problems(site(b"\xef\xbb\xbf[mqtt]\r\nprot = 1999\r\n"))
    assert problem.startswith("site.toml:2:1: ")


def test_limits_that_a_part_refuses_together_are_a_sentence(site):
    """The bound is the MQTT standard's own, and known only to the part that keeps it."""
    (problem,) = problems(site("[mqtt_limits]\nreceive_max = 70000"))
    assert problem.startswith("site.toml:2:1: mqtt_limits.receive_max: receive_max ")


def test_a_flag_is_named_once(site):
    """Its place is its key."""
    (problem,) = problems(site(""), flags={"mqtt.port": "x"})
    assert problem.startswith('--set mqtt.port: found a text ("x"), expected')
    (problem,) = problems(site(""), flags={"mqtt.host": "0.0.0.0"})
    assert problem.startswith('--set mqtt.host: "0.0.0.0" can be reached')


def test_the_bounds_of_a_part_are_given_to_it_as_its_own(site):
    config = load(site("[limits]\nnesting_max = 3\n[mqtt_limits]\nqueue_messages_max = 7")).config
    assert (config.limits.nesting_max, config.mqtt_limits.queue_messages_max) == (3, 7)
    assert config.limits.name_chars_max == Config().limits.name_chars_max


def test_everything_wrong_is_told_at_once(site):
    path = site("[mqtt]\nprot = 1\nport = 'x'\n[htpp]\n[log]\nlevel = 'loud'\n")
    told = problems(path, environ={"HEADWATER__MQTT__HSOT": "x"}, flags={"mqtt.prot": "1"})
    assert [p.split(" ")[0] for p in told] == [
        "site.toml:2:1:",
        "site.toml:3:1:",
        "site.toml:4:1:",
        "site.toml:6:1:",
        "HEADWATER__MQTT__HSOT:",
        "--set",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HEADWATER__MQTT__PROT", "1", "[mqtt] has no key `prot`; did you mean `port`?"),
        ("HEADWATER__MQQT__PORT", "1", "no such section `mqqt`; did you mean `mqtt`?"),
        ("HEADWATER__MQTT", "1", "[mqtt] has no key ``"),
        ("HEADWATER__MQTT__PORT", "x", 'mqtt.port: found a text ("x"), expected a whole number'),
        ("HEADWATER__MQTT__PORT", "9" * 50, "mqtt.port: found a text"),
        ("HEADWATER__MQTT__PLAIN", "yes", "expected true or false"),
        ("HEADWATER__LOG__LEVEL", "", "expected one of"),
    ],
)
def test_an_override_from_the_environment_is_checked_like_the_file(variable, value, says):
    (problem,) = problems(None, environ={variable: value})
    assert problem.startswith(f"{variable}: ")
    assert says in problem


@pytest.mark.parametrize("section", ["mqtt", "http"])
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "broker.example", "127.0.0.1.example"]
)
def test_a_door_to_other_machines_needs_users(site, section, host):
    (problem,) = problems(site(f"[{section}]\nhost = '{host}'"))
    assert problem.startswith(f"site.toml:2:1: {section}.host: ")
    assert "headwater user add" in problem
    with_users = f"[{section}]\nhost = '{host}'\n[broker]\nrights = 'rights.toml'"
    assert load(site(with_users)).config.broker.rights.endswith("rights.toml")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.7", "::1", "localhost"])
def test_loopback_needs_no_users(site, host):
    assert load(site(f"[mqtt]\nhost = '{host}'")).config.mqtt.host == host


def test_http_that_is_off_opens_no_door(site):
    assert not load(site("[http]\nenabled = false\nhost = '0.0.0.0'")).config.http.enabled


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read: "):
            load(path)
    large = tmp_path / "large.toml"
    large.write_text("#" * 300_000)
    with pytest.raises(ConfigError, match="longer than 262144 bytes"):
        load(large)


def test_what_is_shown_reads_back_as_the_same_configuration(site):
    """With the origins as comments: what is printed is itself a configuration."""
    path = site("[broker]\nname = 'north'\n[intake]\nlateness_ms = 5\n[log]\nlevel = 'debug'\n")
    loaded = load(path)
    printed = as_toml(shown(loaded), origins=True)
    assert "lateness_ms = 5" in printed
    assert f"# ms, {path}:4" in printed
    again = load(site(printed)).config
    assert again.intake == loaded.config.intake
    assert (again.broker.name, again.mqtt, again.log) == (
        "north",
        loaded.config.mqtt,
        loaded.config.log,
    )


def test_no_secret_is_shown(site):
    loaded = load(site("[data]\ndatabase = 'postgresql://ann:swordfish@db/hw'"))
    printed = as_toml(shown(loaded), origins=True)
    assert "database" in printed
    assert "swordfish" not in printed + repr(shown(loaded))


def test_the_page_lists_every_setting_with_its_default_and_unit():
    lines = page().splitlines()
    for row in settings():
        (line,) = [
            text
            for text in lines[lines.index(f"## [{row.section}]") :]
            if text.startswith(f"| `{row.name}` |")
        ][:1]
        assert row.about.meaning in line
        assert row.about.unit in line


def test_every_number_has_limits_and_every_name_ends_in_its_unit():
    for row in settings():
        if row.kind is int:
            assert row.about.at_least is not None
            assert row.about.at_most is not None
        if row.about.unit == "ms":
            assert "_ms" in row.name
        if row.about.unit == "bytes":
            assert "bytes" in row.name.split("_")


def test_a_password_in_the_database_s_url_is_not_shown():
    loaded = load(None, {}, {"data.database": "postgresql+psycopg://me:sesame@db/site"})
    assert loaded.config.data.database.endswith("me:sesame@db/site")
    assert "sesame" not in as_toml(shown(loaded), origins=True)


def test_a_broker_may_be_told_to_have_no_directory():
    assert load(None, {}, {"broker.data_dir": ""}).config.broker.data_dir == ""
    assert problems(None, flags={"mqtt.prefix": ""})
