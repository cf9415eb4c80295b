"""The ends of certificates, against those that openssl was asked for."""

import subprocess
from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config import Config
from broker.site.certificates import certificate_ends

DAY_S = 86_400


def made(folder, name, days):
    """A certificate that openssl makes, and when it says that ends."""
    path = folder / f"{name}.pem"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    new += ["-nodes", "-days", str(days), "-subj", f"/CN={name}", "-out", str(path)]
    subprocess.run([*new, "-keyout", str(folder / "key.pem")], check=True, capture_output=True)
    asked = ["openssl", "x509", "-noout", "-enddate", "-in", str(path)]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    moment = told.strip().removesuffix("GMT") + "+0000"
    return path, int(datetime.strptime(moment, "notAfter=%b %d %H:%M:%S %Y %z").timestamp())


def config(**files):
    """A configuration with these files, by section and name."""
    whole = Config()
    for name, path in files.items():
        section, _, key = name.partition("__")
        changed = msgspec.structs.replace(getattr(whole, section), **{key: str(path)})
        whole = msgspec.structs.replace(whole, **{section: changed})
    return whole


@pytest.mark.program("openssl")
@pytest.mark.parametrize("days", [1, 400, 36_500])
def test_an_end_is_the_one_that_openssl_tells(tmp_path, days):
    """Behind 2049 years have four digits."""
    path, end_s = made(tmp_path, "hall", days)
    assert certificate_ends(config(mqtt__tls_cert=path)) == {"mqtt": end_s}
    assert certificate_ends(config(links__tls_cert=path)) == {"links": end_s}


@pytest.mark.program("openssl")
def test_a_chain_ends_with_its_first_and_authorities_with_their_last(tmp_path):
    short, long = made(tmp_path, "short", 10), made(tmp_path, "long", 20)
    both = tmp_path / "both.pem"
    both.write_text(f"notes\n{long[0].read_text()}\n{short[0].read_text()}")
    ends = certificate_ends(config(links__tls_cert=both, links__tls_ca=both))
    assert ends == {"links": short[1], "links_authority": long[1]}
    assert long[1] - short[1] == pytest.approx(10 * DAY_S, abs=60)


def test_what_tells_no_end_is_left_out(tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    assert certificate_ends(Config()) == {}
    assert certificate_ends(config(mqtt__tls_cert=empty)) == {}
    assert certificate_ends(config(mqtt__tls_cert=tmp_path / "nowhere.pem")) == {}
    assert certificate_ends(config(mqtt__tls_cert=tmp_path)) == {}


@pytest.mark.program("openssl")
def test_a_damaged_certificate_has_an_end_or_none(tmp_path):
    path, _ = made(tmp_path, "hall", 30)
    whole = path.read_bytes()

    @given(st.integers(0, len(whole) - 1), st.binary(max_size=4), st.booleans())
    def damaged(at, junk, is_cut):
        path.write_bytes(whole[:at] + junk + (b"" if is_cut else whole[at + len(junk) :]))
        ends = certificate_ends(config(mqtt__tls_cert=path))
        assert set(ends) <= {"mqtt"}

    damaged()
