"""A loopback server that keeps what it is sent: a collector of OpenTelemetry, or LangSmith."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_LANGSMITH = json.dumps(
    {
        "version": "0.10.0",
        "batch_ingest_config": {
            "use_multipart_endpoint": True,
            "size_limit": 100,
            "size_limit_bytes": 20_971_520,
            "scale_up_nthreads_limit": 1,
            "scale_up_qsize_trigger": 1000,
            "scale_down_nempty_trigger": 4,
        },
    }
).encode()


@dataclass
class Collector:
    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def everything(self) -> bytes:
        """All bodies, and the headers that are not for authentication."""
        return b"\n".join(body for _, _, body in self.requests)

    def spans(self) -> list[Span]:
        """The spans that were sent to `/v1/traces`."""
        found: list[Span] = []
        for path, _, body in self.requests:
            assert path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve on a free port from a thread, which has ended when the context is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(_LANGSMITH)

        def do_POST(self) -> None:
            collector.requests.append((self.path, dict(self.headers), self._body()))
            self._answer(b"{}" if "json" in str(self.headers.get("content-type")) else b"")

        do_PATCH = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
            return _plain(body, self.headers.get("content-encoding") or "")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _plain(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


def attributes(span: Span) -> dict[str, object]:
    """A span's attributes as plain values."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}
