"""One HTTP/1.1 request and its answer, read and written anew."""

from collections.abc import Iterable

import h11

from maniple.egress.connection import Streams

_MAX_HEAD_BYTES = 64 * 1024
# Of one connection, not of the message (RFC 9110, 7.6.1); and what the proxy answers for by itself.
_OF_A_CONNECTION = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer upgrade "
    b"http2-settings host expect".split()
)
_Headers = Iterable[tuple[bytes, bytes]]


class Peer:
    """A side that speaks HTTP, as h11 sees it; `EOFError` when it sends more than `limit_bytes`."""

    def __init__(self, role: type[h11.CLIENT] | type[h11.SERVER], streams: Streams, limit_bytes: int) -> None:
        self.streams = streams
        self.state = h11.Connection(role, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._left_bytes = limit_bytes

    async def next_event(self) -> object:
        """The next event that comes; raises `h11.RemoteProtocolError` for what is no HTTP."""
        while (event := self.state.next_event()) is h11.NEED_DATA:
            data = await self.streams[0].read(65_536)
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                raise EOFError
            self.state.receive_data(data)
        return event

    async def send(self, event: h11.Event) -> None:
        """Write an event."""
        self.streams[1].write(self.state.send(event) or b"")
        await self.streams[1].drain()


async def forward(client: Peer, server: Peer, request: h11.Request, path: str, authority: str) -> None:
    """Send the client's `request` for `path` to the server that is `authority`, and its answer back."""
    headers = [(b"host", authority.encode()), *_kept(request.headers), (b"connection", b"close")]
    await server.send(h11.Request(method=request.method, target=path, headers=headers))
    if client.state.they_are_waiting_for_100_continue:
        await client.send(h11.InformationalResponse(status_code=100, headers=[]))
    await _pass_body(client, server)
    try:
        answer = await server.next_event()
        while isinstance(answer, h11.InformationalResponse):
            answer = await server.next_event()
        if not isinstance(answer, h11.Response):
            raise EOFError("no answer")  # noqa: TRY004 - it is about the connection
        headers = [*_kept(answer.headers), (b"connection", b"close")]
        reply = h11.Response(status_code=answer.status_code, reason=answer.reason, headers=headers)
        await client.send(reply)
        await _pass_body(server, client)
    except h11.ProtocolError as error:  # the server's, not the client's
        raise EOFError from error


async def _pass_body(source: Peer, sink: Peer) -> None:
    while isinstance(part := await source.next_event(), h11.Data):
        await sink.send(h11.Data(data=bytes(part.data)))
    if not isinstance(part, h11.EndOfMessage):
        raise EOFError("half a message")  # noqa: TRY004 - it is about the connection
    await sink.send(h11.EndOfMessage())


def _kept(headers: _Headers) -> list[tuple[bytes, bytes]]:
    """The headers that belong to the message; of two ways to say its length, only the one that counts."""
    headers = list(headers)
    named = [value for name, value in headers if name == b"connection"]
    dropped = _OF_A_CONNECTION | {one.strip().lower() for value in named for one in value.split(b",")}
    if any(name == b"transfer-encoding" for name, _ in headers):
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name not in dropped]
