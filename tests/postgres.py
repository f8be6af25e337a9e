"""A private PostgreSQL server for tests: its files are temporary, and it listens on a Unix socket alone."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest

from maniple.store import Store

OpenStore = Callable[..., AbstractAsyncContextManager[Store]]
"""Opens the same data each time; `server=False` opens it beside a server."""
_OPTIONS = "-c listen_addresses= -c max_connections=200 -c fsync=off -c full_page_writes=off"


def find_programs() -> Path | None:
    """Return the newest folder with PostgreSQL's programs; None if it is not installed."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: float(one.parent.name))
    candidates = [*([Path(found).parent] if found else []), *reversed(folders)]
    return next((one for one in candidates if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


def require_programs() -> Path:
    """Return the folder of PostgreSQL's programs; skips the test without them."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: bash setup.sh dev, or apt-get install postgresql")
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install maniple[postgres]")
    return programs


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running server."""

    programs: Path
    folder: Path

    @property
    def socket(self) -> str:
        """Return the folder of its socket."""
        return str(self.folder)

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@/{database}?host={quote(self.socket, safe='')}"

    def run(self, program: str, *words: str) -> None:
        """Run one of PostgreSQL's programs, which refuse to run as root."""
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*user, str(self.programs / program), *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = str(self.folder / "log")
        options = f"-k {self.folder} {_OPTIONS}"
        # Without redirection of its own, the server would keep the pipe of `capture_output` open.
        self.run("pg_ctl", "-w", "-D", str(self.folder / "data"), "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is as a crash."""
        self.run("pg_ctl", "-w", "-D", str(self.folder / "data"), "-m", mode, "stop")

    def create(self, template: str = "template1") -> str:
        """Create a database and return its URL."""
        import psycopg

        name = f"t{uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE {name} TEMPLATE "{template}"'.encode())
        return self.url(name)

    def drop(self, url: str) -> None:
        """Delete a database, with its connections."""
        import psycopg

        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run a new server; skips the test where PostgreSQL is not installed."""
    programs = require_programs()
    folder = Path(tempfile.mkdtemp(prefix="maniple-pg-", dir="/tmp"))  # a socket's path has 107 bytes at most
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        cluster = Cluster(programs, folder)
        data = str(folder / "data")
        cluster.run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D", data)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Line:
    """A TCP port that leads to a server on a Unix socket, until it is cut: then nothing passes any more."""

    socket: str
    url: str = ""
    """The URL of a database through it."""
    passes: asyncio.Event = field(default_factory=asyncio.Event)
    ends: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self.socket)
        self.ends |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self.passes.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def open_line(cluster: Cluster, url: str) -> AsyncIterator[Line]:
    """Open a line to the database of `url`."""
    line, name = Line(f"{cluster.socket}/.s.PGSQL.5432"), url.partition("?")[0].rpartition("/")[2]
    line.passes.set()
    async with await asyncio.start_server(line.connect, "127.0.0.1", 0) as server:
        line.url = f"postgresql://postgres@127.0.0.1:{server.sockets[0].getsockname()[1]}/{name}"
        try:
            yield line
        finally:
            line.passes.set()
            for end in line.ends:
                end.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A private PostgreSQL server."""
    with running_cluster() as running:
        yield running


@pytest.fixture(scope="session")
def template(cluster: Cluster) -> str:
    """The name of a database with today's schema, to be copied."""
    from maniple.store.postgres.migrations import load_migrations, migrate

    url = cluster.create()
    with ThreadPoolExecutor(1) as beside:  # an event loop runs here if an asynchronous fixture asks first
        beside.submit(asyncio.run, migrate(url, load_migrations())).result()
    return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def postgres_url(cluster: Cluster, template: str) -> Iterator[str]:
    """The URL of an empty database with today's schema."""
    url = cluster.create(template)
    yield url
    cluster.drop(url)


@pytest.fixture
def open_postgres_again(postgres_url: str, tmp_path: Path) -> OpenStore:
    """Open one PostgreSQL store, again after it was closed or beside it."""
    from maniple.store.artifact_files import ArtifactFiles
    from maniple.store.postgres.store import open_postgres

    return partial(open_postgres, postgres_url, ArtifactFiles(tmp_path / "artifacts"), pool=4)
