"""MiniWoB's tasks on loopback: pages that set a task, and tell us what it was worth."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

# The task begins with the page, and says at its end what it was worth.
_BEGIN = """<script>
    addEventListener("load", () => {
        Math.seedrandom("%(seed)s");
        core.EPISODE_MAX_TIME = 120000;
        const end = core.endEpisode;
        core.endEpisode = (reward, ...rest) => {
            if (core.EP_TIMER !== null) navigator.sendBeacon("/worth?task=%(task)s&reward=" + reward);
            end(reward, ...rest);
        };
        core.startEpisodeReal();
    });
</script>"""


def folder() -> Path | None:
    """Where the tasks are; None when the package `miniwob` is not installed."""
    spec = importlib.util.find_spec("miniwob")
    return Path(spec.origin).parent / "html" if spec and spec.origin else None


class Tasks:
    """The address of each task, and what its last episode was worth."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._worth: dict[str, asyncio.Future[float]] = {}

    def begin(self, task: str, seed: int) -> str:
        """The address that begins an episode."""
        self._worth[task] = self._loop.create_future()
        return f"http://127.0.0.1:{self._port}/miniwob/{task}.html?task={task}&seed={seed}"

    async def worth(self, task: str, seconds: float) -> float:
        """From -1 to 1, or -1 when the episode does not end."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._worth[task]), seconds)
        except TimeoutError:
            return -1

    def end(self, task: str, reward: float) -> None:
        """Set by the server's threads."""
        self._loop.call_soon_threadsafe(self._end, task, reward)

    def _end(self, task: str, reward: float) -> None:
        if not self._worth[task].done():
            self._worth[task].set_result(reward)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tasks: Tasks

    def send_head(self) -> Any:
        asked = parse_qs(urlsplit(self.path).query)
        if "task" not in asked:
            return super().send_head()
        page = Path(self.translate_path(self.path)).read_text(encoding="utf-8")
        body = (page + _BEGIN % {key: values[0] for key, values in asked.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)

    def do_POST(self) -> None:
        told = parse_qs(urlsplit(self.path).query)
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.tasks.end(told["task"][0], float(told["reward"][0]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@asynccontextmanager
async def serve_tasks(html: Path) -> AsyncIterator[Tasks]:
    """Serve the tasks of MiniWoB on loopback."""

    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(html)))
    server.daemon_threads = True
    Handler.tasks = Tasks(server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Handler.tasks
    finally:
        await asyncio.to_thread(server.shutdown)
        thread.join()
        server.server_close()
