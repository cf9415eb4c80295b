"""A broker's directory and its name: where several share a volume, and no name is given."""

import socket

import pytest

from broker.errors import StartError
from broker.site.data_dir import NAME, claimed, name_of


def test_brokers_that_share_a_volume_have_a_directory_each(tmp_path):
    """Replicas of one service have one volume; a directory that was left is taken up again."""
    shared = str(tmp_path / "*")
    with claimed(shared) as first, claimed(shared) as second:
        assert (first, second) == (tmp_path / "1", tmp_path / "2")
        with pytest.raises(StartError, match="in use by another broker"):
            claimed(str(first)).__enter__()
    with claimed(shared) as again:
        assert again == tmp_path / "1"


def test_a_name_that_is_given_holds(tmp_path):
    """Whoever configures a name means it, whatever was kept."""
    (tmp_path / NAME).write_text("pass\n")
    assert name_of("hall", tmp_path) == "hall"


def test_the_hosts_name_is_kept_and_wins_over_a_later_host(tmp_path, monkeypatch):
    """A container made anew has another host name, and is the same broker to all others."""
    monkeypatch.setattr(socket, "gethostname", lambda: "3f2a91.local_1")
    assert name_of("", tmp_path) == "3f2a91.local_1"
    monkeypatch.setattr(socket, "gethostname", lambda: "other")
    assert name_of("", tmp_path) == "3f2a91.local_1"
    assert name_of("", None) == "other"


@pytest.mark.parametrize("host", ["localhost", "", "---"])
def test_a_host_without_a_name_of_its_own_is_no_name(host, tmp_path, monkeypatch):
    """Two brokers called localhost would take each other's place."""
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    with pytest.raises(StartError, match=r"set broker\.name"):
        name_of("", tmp_path)
    assert not (tmp_path / NAME).exists()


def test_a_file_of_the_name_that_holds_none_is_told(tmp_path):
    """A new name would make another broker of it, for which nobody waits."""
    (tmp_path / NAME).write_text("\0\0")
    with pytest.raises(StartError, match="holds no name of a broker"):
        name_of("", tmp_path)
