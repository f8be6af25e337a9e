"""Public addresses of the machine itself, in a network namespace whose interface has some."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from maniple.egress.guard import is_own_address

ADDRESS, LATER, OTHER = "8.8.4.4", "9.9.9.9", "1.1.1.1"
OWN_IPV6 = "2606:4700::1111"

SCRIPT = f"""
import asyncio, fcntl, json, socket, struct, sys, time
from maniple.config.web_settings import FetchSettings
from maniple.egress import AddressGuard
from maniple.errors import FetchError

def add(alias, address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        where = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(control, 0x8916, struct.pack("16s16s8x", alias.encode(), where))  # SIOCSIFADDR

def add_ipv6(address):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as control:
        packed = socket.inet_pton(socket.AF_INET6, address)
        fcntl.ioctl(control, 0x8916, packed + struct.pack("Ii", 128, socket.if_nametoindex("lo")))
    for _ in range(500):  # the kernel checks in the background that no other machine has the address
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
                return probe.bind((address, 0))
        except OSError:
            time.sleep(0.01)

async def judge(guard, host):
    try:
        return await guard.resolve(host, 443)
    except FetchError as error:
        return type(error).__name__

async def main():
    guard, opened = AddressGuard(FetchSettings()), AddressGuard(FetchSettings(allow_private=["{ADDRESS}/32"]))
    add("lo:1", "{ADDRESS}")
    add_ipv6("{OWN_IPV6}")
    found = {{host: await judge(guard, host) for host in sys.argv[1:]}}
    found["opened"] = await judge(opened, "{ADDRESS}")
    found["before"] = await judge(guard, "{LATER}")
    add("lo:2", "{LATER}")
    found["after"] = await judge(guard, "{LATER}")
    print(json.dumps(found))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the guard answers about each host where the interface has these addresses."""
    folder = tmp_path_factory.mktemp("own")
    hosts = folder / "hosts"
    hosts.write_text(f"{ADDRESS} own.test\n{OTHER} other.test\n")
    command = ["bwrap", "--bind", "/", "/", "--ro-bind", str(hosts), "/etc/hosts", "--unshare-user"]
    command += ["--unshare-net", "--uid", "0", "--cap-add", "CAP_NET_ADMIN", "--die-with-parent"]
    if not shutil.which("bwrap") or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("bubblewrap makes no network namespace here")
    names = [ADDRESS, OTHER, OWN_IPV6, "own.test", "other.test", "0x8.8.4.4"]
    done = subprocess.run(
        [*command, sys.executable, "-c", SCRIPT, *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "src"},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("host", [ADDRESS, OWN_IPV6, "own.test", "0x8.8.4.4"])
def test_an_own_public_address_and_a_name_of_it_are_refused(found: dict[str, str], host: str) -> None:
    assert found[host] == "PermanentFetchError"


@pytest.mark.parametrize("host", [OTHER, "other.test"])
def test_an_address_of_another_machine_is_not(found: dict[str, str], host: str) -> None:
    assert found[host] == OTHER


def test_an_address_that_the_interface_gets_later_is_refused_from_then_on(found: dict[str, str]) -> None:
    assert (found["before"], found["after"]) == (LATER, "PermanentFetchError")


def test_the_operator_can_open_an_own_address(found: dict[str, str]) -> None:
    assert found["opened"] == ADDRESS


def test_the_kernel_knows_which_addresses_are_the_machines_own() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address(OTHER) and not is_own_address("2606:4700::1") and not is_own_address("no.test")


def test_it_is_known_too_where_sockets_may_be_bound_to_foreign_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "on").write_text("1\n")
    files = dict.fromkeys([socket.AF_INET, socket.AF_INET6], tmp_path / "on")
    monkeypatch.setattr("maniple.egress.guard._NONLOCAL_BIND", files)
    assert is_own_address("127.0.0.1")
