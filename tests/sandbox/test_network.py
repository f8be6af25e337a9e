"""What code in the real sandbox reaches through an allowlist: the named host, and nothing else."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.config.settings import FetchSettings, SandboxSettings
from maniple.egress import AddressGuard, EgressRoute
from maniple.errors import Unavailable
from maniple.sandbox import ExecutionResult, Sandbox, open_sandbox
from maniple.workspace import Workspace
from tests.crawler.web import Canary, Reply, Site, open_canary, open_site, redirect
from tests.sandbox.nobody import home_of_nobody

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

# What listens there may be reached under its name; the canary, on 127.0.0.1 and ::1, may not.
ALLOWED = "127.0.0.2"
DNS = {"site.test": ALLOWED, "inner.test": "127.0.0.1"}
Run = Callable[[str], Awaitable[ExecutionResult]]


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply("through")}, ALLOWED) as site:
        yield site


@pytest.fixture
async def canary(anyio_backend: str) -> AsyncIterator[Canary]:
    async with open_canary() as canary:
        yield canary


@asynccontextmanager
async def connected(*names: str) -> AsyncIterator[Sandbox]:
    guard = AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))

    async def resolve(host: str, port: int, /) -> str:
        return await guard.resolve(DNS.get(host, host), port)

    settings = SandboxSettings(network="allowlist", allow_hosts=names)
    async with open_sandbox(settings, egress=EgressRoute(resolve, asyncio.open_connection)) as sandbox:
        yield sandbox


WAYS = {
    "urllib": "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://{place}/\").read())'",
    "curl": "curl -sS http://{place}/",
    "curl through CONNECT": "curl -sSp http://{place}/",
    "a proxy of its own choice": "curl -sSx http://127.0.0.1:3128 http://{place}/",
    "no forwarder": "curl -sS --unix-socket /run/maniple/egress --request-target http://{place}/ http://x/",
}


async def test_a_named_host_is_reached(site: Site, workspace: Workspace, subtests: pytest.Subtests) -> None:
    place = f"site.test:{site.port}"
    async with connected(place) as sandbox:
        for name, way in WAYS.items():
            with subtests.test(name):
                site.requests.clear()
                completed = await sandbox.run_bash(way.format(place=place), key=name, workspace=workspace)
                assert "through" in completed.stdout, completed.text()
                assert len(site.requests) == 1


SECURE_WAYS = {
    "curl": "curl -sS --cacert certificate https://{place}/",
    "urllib": "SSL_CERT_FILE=certificate python3 -c "
    "'import urllib.request; print(urllib.request.urlopen(\"https://{place}/\").read())'",
}


@pytest.mark.slow
async def test_https_is_spoken_with_the_host_itself(
    tmp_path: Path, workspace: Workspace, subtests: pytest.Subtests
) -> None:
    certificate, context = await asyncio.to_thread(certified, "site.test", tmp_path)
    workspace.write("certificate", certificate)
    async with open_site({"/": Reply("private talk")}, ALLOWED, tls=context) as site:
        place = f"site.test:{site.port}"
        async with connected(place) as sandbox:
            for name, way in SECURE_WAYS.items():
                with subtests.test(name):
                    completed = await sandbox.run_bash(way.format(place=place), key=name, workspace=workspace)
                    assert "private talk" in completed.stdout, completed.text()


def certified(host: str, folder: Path) -> tuple[bytes, ssl.SSLContext]:
    """A certificate for `host`, which vouches for itself, and the server's side of it."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout key -out certificate"
    subject = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    subprocess.run([*command.split(), *subject], cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    return (folder / "certificate").read_bytes(), context


@pytest.mark.skipif(not Path("/etc/ssl/certs").is_dir(), reason="this machine knows no authorities")
async def test_the_authorities_that_the_host_trusts_are_known(workspace: Workspace) -> None:
    async with connected("site.test") as sandbox:
        code = "import ssl; len(ssl.create_default_context().get_ca_certs()) > 0"
        known = await sandbox.run_python(code, key="t", workspace=workspace)
        private = await sandbox.run_bash("ls /etc/ssl", key="t", workspace=workspace)
    assert known.value == "True", known.text()
    assert private.stdout.split() == ["certs"], "and no private key of it"


async def test_python_and_bash_reach_it_again_and_again(site: Site, workspace: Workspace) -> None:
    place = f"site.test:{site.port}"
    read = f"import urllib.request as r; r.urlopen('http://{place}/').read()"
    async with connected(place) as sandbox:
        for _ in range(3):
            completed = await sandbox.run_python(read, key="t", workspace=workspace)
            assert completed.value == "b'through'", completed.text()
            completed = await sandbox.run_bash(f"curl -sS http://{place}/", key="t", workspace=workspace)
            assert completed.stdout == "through"
    assert len(site.requests) == 6


@pytest.mark.slow
async def test_many_requests_at_once_are_all_answered(site: Site, workspace: Workspace) -> None:
    place = f"site.test:{site.port}"
    async with connected(place) as sandbox:
        command = f"seq 60 | xargs -P 12 -I N curl -sS http://{place}/ | grep -o through | wc -l"
        count = await sandbox.run_bash(command, key="t", workspace=workspace)
    assert count.stdout.strip() == "60", count.text()


async def test_large_answers_come_whole(site: Site, workspace: Workspace) -> None:
    site.pages["/large"] = Reply("x" * 5_000_000)
    place = f"site.test:{site.port}"
    async with connected(place) as sandbox:
        count = await sandbox.run_bash(f"curl -sS http://{place}/large | wc -c", key="t", workspace=workspace)
    assert count.stdout.strip() == "5000000"


ATTEMPTS = {
    "another host": "curl -sS -m 5 http://inner.test:{canary}/",
    "an address": "curl -sS -m 5 http://127.0.0.1:{canary}/ --noproxy ''",
    "an IPv6 address": "curl -sS -m 5 'http://[::1]:{canary}/' --noproxy ''",
    "the address without the proxy": "curl -sS -m 5 --noproxy '*' http://127.0.0.1:{canary}/",
    "the site's address without the proxy": "curl -sS -m 5 --noproxy '*' http://127.0.0.2:{site}/",
    "a name without the proxy": "curl -sS -m 5 --noproxy '*' http://site.test:{site}/",
    "the site's address": "curl -sS -m 5 http://127.0.0.2:{site}/",
    "another port of the site": "curl -sS -m 5 http://site.test:{canary}/",
    "CONNECT to another host": "curl -sSp -m 5 http://inner.test:{canary}/",
    "CONNECT to mail": "curl -sSp -m 5 http://site.test:25/",
    "a redirect": "curl -sSL -m 5 http://site.test:{site}/go",
    "SOCKS": "curl -sS -m 5 -x socks5h://127.0.0.1:3128 http://inner.test:{canary}/",
    "UDP": "echo x > /dev/udp/127.0.0.1/{canary}",
    "UDP to the site": "echo x > /dev/udp/127.0.0.2/{canary}",
    "TCP": "exec 3<> /dev/tcp/127.0.0.2/{site} && echo canary",
    "a second request": "printf 'GET http://site.test:{site}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
    "GET http://127.0.0.1:{canary}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' | "
    "timeout 5 bash -c 'exec 3<> /dev/tcp/127.0.0.1/3128; cat >&3; cat <&3'",
    "a raw socket": "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_RAW, 1); print(\"canary\")'",
    "a packet socket": "python3 -c 'import socket as s; s.socket(s.AF_PACKET, 3); print(\"canary\")'",
    "name servers": 'python3 -c \'import socket as s; print("canary", s.getaddrinfo("site.test", 80))\'',
}


async def test_nothing_else_is_reached(
    site: Site, canary: Canary, workspace: Workspace, subtests: pytest.Subtests
) -> None:
    site.pages["/go"] = redirect(f"http://inner.test:{canary.port}/")
    async with connected("site.test", f"site.test:{site.port}") as sandbox:
        for name, attempt in ATTEMPTS.items():
            with subtests.test(name):
                site.requests.clear()
                command = attempt.format(site=site.port, canary=canary.port)
                completed = await sandbox.run_bash(command, key="t", workspace=workspace)
                assert canary.hits == []
                assert "canary" not in completed.stdout
                assert [path for _, path, _ in site.requests if path != "/go"] in ([], ["/"])
        # The way out still works: no attempt was refused only because an earlier one had closed it.
        last = await sandbox.run_bash(f"curl -sS http://site.test:{site.port}/", key="t", workspace=workspace)
        assert last.stdout == "through"


async def test_a_refused_host_is_reported_with_the_setting_that_names_hosts(
    site: Site, workspace: Workspace
) -> None:
    async with connected(f"site.test:{site.port}") as sandbox:
        refused = await sandbox.run_bash("curl -sS http://other.test/", key="t", workspace=workspace)
        tunnel = await sandbox.run_python(
            "import urllib.request as r; r.urlopen('https://other.test/')", key="t", workspace=workspace
        )
    words = "sandbox.allow_hosts in conf.yaml does not name other.test:80, so the sandbox cannot reach it.\n"
    assert refused.stdout == words
    assert "Tunnel connection failed: 403 sandbox.allow_hosts" in tunnel.stderr


async def test_a_server_of_its_own_is_reached_without_the_proxy(site: Site, workspace: Workspace) -> None:
    serve = """
from http.server import HTTPServer, SimpleHTTPRequestHandler
from threading import Thread
Thread(target=HTTPServer(("127.0.0.1", 8080), SimpleHTTPRequestHandler).serve_forever, daemon=True).start()
"""
    async with connected(f"site.test:{site.port}") as sandbox:
        await sandbox.run_python(serve, key="t", workspace=workspace)
        own = await sandbox.run_bash("curl -sS http://localhost:8080/", key="t", workspace=workspace)
    assert "Directory listing" in own.stdout, own.text()


async def test_two_threads_have_ways_out_that_do_not_meet(site: Site, workspace: Workspace) -> None:
    place = f"site.test:{site.port}"
    async with connected(place) as sandbox:
        for key in ("one", "two"):
            got = await sandbox.run_bash(f"curl -sS http://{place}/", key=key, workspace=workspace)
            assert got.stdout == "through"


async def test_a_session_takes_its_way_out_along_when_it_ends(
    site: Site, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home_of_nobody() as folder:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        async with connected(f"site.test:{site.port}") as sandbox:
            doors: list[int] = []
            await sandbox.run_bash("true", key="t", workspace=workspace)
            doors.append(len([*folder.glob("*/[0-9]*")]))
            await sandbox.stop("t")
            doors.append(len([*folder.glob("*/[0-9]*")]))
    assert doors == [1, 0]


async def test_without_network_there_is_no_way_and_no_variable(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    look = "env | grep -i proxy; ls /run/maniple; curl -sS -m 5 -x http://127.0.0.1:3128 http://site.test/"
    completed = await sandbox.run_bash(look, key="t", workspace=workspace)
    assert "proxy" not in completed.stdout
    assert "egress" not in completed.stdout
    assert "forwarder" not in completed.stdout
    assert completed.exit_code == 7  # curl's "could not connect"


async def test_an_allowlist_without_a_way_out_stays_closed(site: Site, workspace: Workspace) -> None:
    async with open_sandbox(SandboxSettings(network="allowlist", allow_hosts=("site.test",))) as sandbox:
        completed = await sandbox.run_bash(
            "env | grep -i proxy; ls /run/maniple", key="t", workspace=workspace
        )
    assert "egress" not in completed.stdout


async def test_a_way_out_that_cannot_be_opened_is_reported_and_no_code_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    settings = SandboxSettings(network="allowlist", allow_hosts=("site.test",))
    leads = EgressRoute(AddressGuard(FetchSettings()).resolve, asyncio.open_connection)
    with pytest.raises(Unavailable) as refused:
        await open_sandbox(settings, egress=leads).__aenter__()
    assert "AF_UNIX path too long" in refused.value.reason
    assert "sandbox.network: none" in refused.value.remedy
    assert list(long.iterdir()) == []
