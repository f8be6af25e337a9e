"""The Daytona backend, for its cloud or a server of your own: one Daytona sandbox per session.

Python runs in its code interpreter. The snapshot or image sets the limits of memory, processors and disk.
"""

import ast
import asyncio
import base64
import binascii
import json
import math
import secrets
import shlex
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backends.remote import (
    CALL_MARK,
    MAX_FIGURE_BYTES,
    MAX_FIGURES,
    CallOutcome,
    CallOutput,
    FileStamp,
    OutputFloodError,
    RemoteMachine,
    RemoteSession,
    close_on_failure,
    kill_call,
    list_files,
    make_workspace,
    read_listing,
    remove_files,
)
from maniple.workspace.files import Workspace

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox, OutputMessage
    from daytona_toolbox_api_client_async import InterpreterContext

_START_SECONDS = 60
_BUILD_SECONDS = 600  # an image is built at its first use
_STOP_SECONDS = 10


class DaytonaBackend:
    """Starts sandboxes at Daytona."""

    name = "daytona"

    def __init__(self, client: "AsyncDaytona", settings: SandboxSettings) -> None:
        self._client = client
        self._settings = settings

    async def start(self, workspace: Workspace) -> RemoteSession:
        """Start a sandbox; files go there with the first call."""
        with _translate_errors():
            sandbox = await self._create()
            async with close_on_failure(sandbox.delete):
                made = await sandbox.process.exec(_in_bash(make_workspace()))
                directory = made.result.strip()
                context = await sandbox.code_interpreter.create_context(cwd=directory)
        machine = DaytonaMachine(sandbox, context, directory)
        return RemoteSession(machine, workspace, self._settings)

    async def _create(self) -> "AsyncSandbox":
        from daytona import CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams

        wanted: dict[str, Any] = {
            "language": "python",
            "labels": {"made-by": "maniple"},
            "env_vars": {"MPLBACKEND": "Agg"},
            # An unused sandbox stops automatically and is then deleted.
            "ephemeral": True,
            "auto_stop_interval": math.ceil(self._settings.idle_seconds / 60) + 1,
        }
        if self._settings.network == "none":
            wanted["network_block_all"] = True
        else:
            wanted["domain_allow_list"] = ",".join(self._settings.allow_hosts)
        if self._settings.image:
            image = CreateSandboxFromImageParams(image=self._settings.image, **wanted)
            return await self._client.create(image, timeout=_BUILD_SECONDS)
        return await self._client.create(CreateSandboxFromSnapshotParams(**wanted), timeout=_START_SECONDS)


class DaytonaMachine(RemoteMachine):
    """One sandbox of Daytona."""

    def __init__(self, sandbox: "AsyncSandbox", context: "InterpreterContext", directory: str) -> None:
        self._sandbox = sandbox
        self._context = context
        self._directory = directory

    async def python(self, code: str, output: CallOutput) -> CallOutcome:
        """Run code in the interpreter's context, then collect its value and figures."""
        with _translate_errors(output):
            result = await self._sandbox.code_interpreter.run_code(
                capture_last_value(code),
                context=self._context,
                on_stdout=lambda piece: output.add("stdout", piece.output),
                on_stderr=lambda piece: output.add("stderr", piece.output),
                timeout=0,
            )
            if result.error is not None:
                trace = result.error.traceback or f"{result.error.name}: {result.error.value}"
                output.add("stderr", trace)
            value, figures = await self._collect()
        return CallOutcome(int(result.error is not None), value, figures)

    async def bash(self, command: str, output: CallOutput) -> CallOutcome:
        """Run a command; a cancellation kills all its processes."""
        from daytona import SessionExecuteRequest

        mark = secrets.token_hex(8)
        process = self._sandbox.process
        line = f"cd {shlex.quote(self._directory)} && {CALL_MARK}={mark} {_in_bash(command)} </dev/null"
        with _translate_errors():
            await process.create_session(mark)
            try:
                request = SessionExecuteRequest(command=line, run_async=True)
                started = await process.execute_session_command(mark, request)
                await self._follow(mark, started.cmd_id, output)
                ended = await process.get_session_command(mark, started.cmd_id)
            finally:
                await asyncio.shield(process.delete_session(mark))
        return CallOutcome(137 if ended.exit_code is None else int(ended.exit_code) % 256)

    async def _follow(self, mark: str, command: str, output: CallOutput) -> None:
        """Follow a command to its end; a flood of output or a cancellation kills it."""
        flooded = asyncio.Event()

        def receive(stream: Literal["stdout", "stderr"], text: str) -> None:
            try:
                output.add(stream, text)
            except OutputFloodError:
                flooded.set()

        logs = asyncio.create_task(
            self._sandbox.process.get_session_command_logs_async(
                mark, command, lambda text: receive("stdout", text), lambda text: receive("stderr", text)
            )
        )
        flood = asyncio.create_task(flooded.wait())
        try:
            await asyncio.wait({logs, flood}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flood.cancel()
            # Killed before the stream is closed: the SDK is slow to close an active stream.
            if not logs.done():
                await asyncio.shield(self._printed(kill_call(mark)))
                await asyncio.wait({logs}, timeout=_STOP_SECONDS)
                logs.cancel()
        if flooded.is_set():
            raise OutputFloodError
        await logs

    async def restart_python(self) -> None:
        """Replace the context, and with it the interpreter."""
        interpreter = self._sandbox.code_interpreter
        with _translate_errors():
            await interpreter.delete_context(self._context)
            self._context = await interpreter.create_context(cwd=self._directory)

    async def extend_lifetime(self) -> None:
        """Let the sandbox live for another idle time."""
        with _translate_errors():
            await self._sandbox.refresh_activity()

    async def close(self) -> None:
        """Delete the sandbox."""
        from daytona import DaytonaNotFoundError

        with _translate_errors():
            try:
                await self._sandbox.delete(timeout=_STOP_SECONDS)
            except DaytonaNotFoundError:
                return

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        """The files of the working directory."""
        return read_listing(await self._printed(list_files(self._directory, limit)))

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """One file, as it streams in."""
        from aiohttp import ClientError
        from daytona import DaytonaError

        content = bytearray()
        try:
            stream = await self._sandbox.fs.download_file_stream(f"{self._directory}/{path}")
            async with aclosing(stream):  # type: ignore[type-var]  # it is a generator, in spite of its declaration
                async for piece in stream:
                    content += piece
                    if len(content) > limit_bytes:
                        raise FileError(f"{path!r} has more than the {limit_bytes} bytes that can be stored.")
        except (DaytonaError, ClientError):
            raise FileError(f"{path!r} could not be read in the sandbox.") from None
        return bytes(content)

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files, and the directories above them."""
        from daytona import FileUpload

        folders = sorted({str(PurePosixPath(self._directory, path).parent) for path, _ in files})
        await self._printed(f"mkdir -p -- {shlex.join(folders)}")
        with _translate_errors():
            await self._sandbox.fs.upload_files(
                [FileUpload(content, f"{self._directory}/{path}") for path, content in files]
            )

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        for command in remove_files(self._directory, paths):
            await self._printed(command)

    async def _collect(self) -> tuple[str, tuple[bytes, ...]]:
        printed: list[str] = []

        def receive(piece: "OutputMessage") -> None:
            printed.append(piece.output)

        await self._sandbox.code_interpreter.run_code(
            COLLECT_RESULT, context=self._context, on_stdout=receive, timeout=10
        )
        return parse_collected("".join(printed))

    async def _printed(self, command: str) -> str:
        with _translate_errors():
            return (await self._sandbox.process.exec(_in_bash(command))).result


def _in_bash(command: str) -> str:
    # Otherwise the first available of zsh, bash and sh runs the command.
    return f"bash -c {shlex.quote(command)}"


@asynccontextmanager
async def open_daytona(settings: SandboxSettings) -> AsyncIterator[DaytonaBackend]:
    """Open a client of the service; raises `SandboxError`."""
    with _translate_errors():
        from daytona import AsyncDaytona, DaytonaConfig

        key = settings.daytona_api_key.get_secret_value() if settings.daytona_api_key else None
        with warnings.catch_warnings():
            # It warns that it does not read an address from .env; our settings do.
            warnings.simplefilter("ignore")
            client = AsyncDaytona(DaytonaConfig(api_key=key, api_url=settings.daytona_api_url))
    try:
        yield DaytonaBackend(client, settings)
    finally:
        await client.close()


@contextmanager
def _translate_errors(output: CallOutput | None = None) -> Iterator[None]:
    """Raise errors of the SDK again as `SandboxError`, with what to do."""
    from daytona import (
        DaytonaAuthenticationError,
        DaytonaConnectionError,
        DaytonaError,
        DaytonaNotFoundError,
        DaytonaRateLimitError,
    )

    try:
        yield
    except DaytonaError as error:
        if output is not None and output.is_flooded:  # the SDK wraps our exception
            raise OutputFloodError from None
        match error:
            case DaytonaAuthenticationError():
                raise SandboxError("Daytona refused the key; correct DAYTONA_API_KEY in .env.") from None
            case DaytonaRateLimitError():
                message = "Daytona allows no more requests now; wait, or lower `sandbox.concurrent`."
                raise SandboxError(message) from None
            case DaytonaNotFoundError():
                message = f"Daytona has no such sandbox or image: {error}. Check `sandbox.image`."
                raise SandboxError(message) from None
            case DaytonaConnectionError():
                message = "Daytona cannot be reached: check the network and DAYTONA_API_URL."
                raise SandboxError(message) from error
        raise SandboxError(f"Daytona reported an error: {error}.") from error


_VALUE_NAME = "_maniple_value"
_VALUE_CHARACTERS = 4000

COLLECT_RESULT = f"""
def _maniple_afterwards(value):
    import base64, io, json, sys
    figures, plots = [], sys.modules.get("matplotlib.pyplot")
    for number in (plots.get_fignums()[:{MAX_FIGURES}] if plots else ()):
        file = io.BytesIO()
        plots.figure(number).savefig(file, format="png")
        figures.append(base64.b64encode(file.getvalue()).decode())
    if plots:
        plots.close("all")
    text = "" if value is None else repr(value)[:{_VALUE_CHARACTERS}]
    print(json.dumps({{"value": text, "figures": figures}}))
_maniple_afterwards(globals().pop("{_VALUE_NAME}", None))
del _maniple_afterwards
"""
"""Prints them as JSON, in the namespace of the code that was run by `keeping_value`."""


def capture_last_value(code: str) -> str:
    """Return the code with its last expression, if any, assigned to a variable.

    Invalid code is returned unchanged; the interpreter reports the error.
    """
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        return code
    lines = code.encode().split(b"\n")
    above, expression = lines[: last.lineno - 1], lines[last.lineno - 1 : last.end_lineno]
    expression[-1] = expression[-1][: last.end_col_offset]
    before, first = expression[0][: last.col_offset], expression[0][last.col_offset :]
    changed = [*above, before + f"{_VALUE_NAME} = (".encode() + first, *expression[1:], b")"]
    return b"\n".join(changed).decode()


def parse_collected(printed: str) -> tuple[str, tuple[bytes, ...]]:
    """Value and figures that `AFTERWARDS` printed; nothing where that makes no sense."""
    try:
        result = json.loads(printed)
    except (ValueError, RecursionError):
        return "", ()
    if not isinstance(result, dict):
        return "", ()
    value, figures = result.get("value"), result.get("figures")
    decoded = [_decode_figure(one) for one in (figures if isinstance(figures, list) else ())[:MAX_FIGURES]]
    return (
        value[:_VALUE_CHARACTERS].encode(errors="replace").decode() if isinstance(value, str) else "",
        tuple(one for one in decoded if one),
    )


def _decode_figure(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) > MAX_FIGURE_BYTES * 4 // 3:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
