"""A loopback site that repeats every canary: pages, a search engine, and a collector of traces."""

import html
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.safety.canaries import CANARIES

ALL = " ".join(CANARIES.values())


class Site:
    """What was sent to it: (path, body)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[tuple[str, bytes]] = []


@contextmanager
def open_site() -> Iterator[Site]:
    """Serve from threads that have ended when the context is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = html.escape(ALL)
            text = f"<body><article><p>It says: {said}</p></article></body>"
            page = f"<html><head><title>{said}</title></head>{text}</html>"
            self._answer(200, "text/html; charset=utf-8", page)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            site.received.append((self.path, body))
            if b"refuse" in body:
                told = {"detail": {"error": f"Invalid key. {ALL}"}}
                return self._answer(401, "application/json", json.dumps(told))
            result = {
                "title": ALL,
                "url": f"{site.url}/?q={CANARIES['Tavily']}",
                "content": ALL,
                "score": 1.0,
            }
            return self._answer(200, "application/json", json.dumps({"query": ALL, "results": [result]}))

        def _answer(self, status: int, media_type: str, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
