"""The fleet file: what is accepted, what is refused and with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from probes.fleet.file import fleet_of, load_fleet
from probes.fleet.remote import remote_line

_ROOT = Path(__file__).parents[3]
_HOST = {"region": "aws:us-east-1", "host": "203.0.113.5"}


def test_the_example_is_a_fleet() -> None:
    fleet = load_fleet(_ROOT / "configs" / "fleet.example.toml")
    assert len(fleet) >= 3
    assert any(host.jump for host in fleet)
    for src in fleet.hosts:
        for dst in fleet.hosts:
            if src != dst:
                assert fleet.target(src, dst)


def test_a_host_has_the_files_defaults_and_its_own_fields() -> None:
    document = {
        "user": "probe",
        "key": "keys/id",
        "addresses": "private-within-provider",
        "host": [
            _HOST
            | {
                "region": "gcp:us-east1-b",
                "host": "203.0.113.9",
                "private_address": "10.0.0.2",
                "public_address": "203.0.113.9",
                "vm_type": "gcp:n2-standard-32",
            },
            {"region": "gcp:us-west1", "host": "vm.example.com", "private_address": "10.1.0.2"},
            _HOST | {"user": "root", "key": "~/other", "egress_usd_per_gb": 0.05},
        ],
    }
    fleet = fleet_of(document, "fleet.toml", Path("/etc/fleet"))
    east, west, aws = fleet
    assert (east.region, east.zone, east.vm_type) == ("gcp:us-east1", "b", "n2-standard-32")
    assert (east.user, east.key) == ("probe", Path("/etc/fleet/keys/id"))
    assert (aws.user, aws.key) == ("root", Path.home() / "other")
    assert fleet.target(west.name, east.name) == "10.0.0.2"
    assert fleet.target(aws.name, east.name) == "203.0.113.9"
    assert fleet.target(east.name, aws.name) == "203.0.113.5"


def test_hosts_of_one_region_get_names_of_their_own() -> None:
    hosts = [_HOST, _HOST | {"host": "203.0.113.6"}]
    fleet = fleet_of({"host": hosts}, "fleet.toml", Path())
    assert list(fleet.hosts) == ["aws:us-east-1", "aws:us-east-1#2"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "no `\\[\\[host\\]\\]`"),
        ({"host": [{"host": "a"}]}, "number 1, region is missing"),
        ({"host": [_HOST, {"region": "us-east", "host": "b"}]}, "number 2, region .*provider:"),
        ({"host": [_HOST | {"host": "-oProxyCommand=id"}]}, "IP address or a host name"),
        ({"host": [_HOST | {"host": "a;id"}]}, "IP address or a host name"),
        ({"host": [_HOST | {"public_address": "224.0.0.1"}]}, "no address of one machine"),
        ({"host": [_HOST | {"port": 70_000}]}, "number 1, port"),
        ({"host": [_HOST | {"user": "a b"}]}, "user name"),
        ({"host": [_HOST | {"jump": "gate"}]}, "names no `\\[\\[jump\\]\\]`"),
        ({"host": [_HOST, _HOST | {"name": "again"}]}, "same machine as aws:us-east-1"),
        ({"host": [_HOST | {"probe_ports": [6000, 5000]}]}, "first <= last"),
        ({"host": [_HOST | {"egress_usd_per_gb": float("nan")}]}, "egress_usd_per_gb"),
        ({"host": [_HOST], "agent_forwarding": True}, "not a field of a fleet file"),
    ],
)
def test_a_wrong_entry_is_named(document: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fleet_of(document, "fleet.toml", Path())


def test_a_file_that_is_not_toml_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        load_fleet(tmp_path / "none.toml")
    path = tmp_path / "fleet.toml"
    path.write_bytes(b"[[host]\nregion = 'aws:us-east-1'")
    with pytest.raises(InputError, match="not valid TOML"):
        load_fleet(path)


def test_a_user_without_a_name_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_number: int) -> None:
        raise KeyError

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(InputError, match="user is missing"):
        fleet_of({"host": [_HOST]}, "fleet.toml", Path())
    (host,) = fleet_of({"user": "probe", "host": [_HOST]}, "fleet.toml", Path())
    assert host.user == "probe"


def test_a_home_folder_of_nobody_is_named() -> None:
    for field in ("key", "known_hosts"):
        with pytest.raises(InputError, match=rf"{field} begins with .*~nobody-of-this-name/id"):
            fleet_of({field: "~nobody-of-this-name/id", "host": [_HOST]}, "fleet.toml", Path())


def test_probes_go_only_to_members() -> None:
    fleet = fleet_of({"host": [_HOST]}, "fleet.toml", Path())
    with pytest.raises(InputError, match="is not a host of fleet"):
        fleet.target("aws:us-east-1", "198.51.100.7")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
_FIELDS = (
    "region",
    "host",
    "port",
    "user",
    "key",
    "known_hosts",
    "jump",
    "zone",
    "vm_type",
    "private_address",
    "public_address",
    "probe_ports",
    "egress_usd_per_gb",
    "name",
)


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON), st.text(max_size=40))
def test_any_entry_is_a_host_or_an_input_error(entry: dict[str, Any], address: str) -> None:
    document = {"host": [_HOST | {"host": address} | entry]}
    try:
        (host,) = fleet_of(document, "fleet.toml", Path())
    except InputError:
        return
    for name in (host.host, host.private_address, host.public_address, host.user):
        # Fit for a command line as it stands: no option, no word of a shell.
        assert not name.startswith("-")
        assert remote_line([name]) in (name, "''")
