"""Forward a port on the sandbox's loopback to the unix socket of the egress gateway.

`python -I -S forwarder.py PORT SOCKET` returns when the port is open and continues in the background. It uses
the standard library only: it runs inside the sandbox, where maniple is not installed.
"""

import os
import socket
import sys


def main() -> None:
    """Listen, and serve in a process that holds nothing of its parent's."""
    port, path = int(sys.argv[1]), sys.argv[2]
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    if os.fork():
        return
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    listening = listener.fileno()
    os.closerange(3, listening)
    os.closerange(listening + 1, 256)
    _serve(listener, path)


def _serve(listener: socket.socket, path: str) -> None:
    # After the port is open, so that clients do not wait for this. Threads would count as processes.
    import asyncio

    async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
            sink.write_eof()
        except OSError:
            sink.close()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, gateway = await asyncio.open_unix_connection(path)
        except OSError:
            writer.close()
            return
        asking = asyncio.create_task(carry(reader, gateway))
        await carry(answers, writer)
        asking.cancel()
        gateway.close()
        writer.close()

    async def serve() -> None:
        async with await asyncio.start_server(join, sock=listener) as server:
            await server.serve_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
