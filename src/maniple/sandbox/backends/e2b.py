"""The E2B backend: one E2B machine per session, with Python in its code interpreter.

The template sets the limits of memory, processors and disk.
"""

import asyncio
import base64
import binascii
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backends.remote import (
    CALL_MARK,
    MAX_FIGURE_BYTES,
    MAX_FIGURES,
    CallOutcome,
    CallOutput,
    FileStamp,
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
    from e2b_code_interpreter import AsyncSandbox, Context
    from e2b_code_interpreter.models import Execution

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MAX_SECONDS = 3600  # the maximum of a hobby account
_SPARE_SECONDS = 60
_VALUE_CHARACTERS = 4000
_EVERYWHERE = "0.0.0.0/0"


class E2BBackend:
    """Starts machines at E2B."""

    name = "e2b"

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings

    async def start(self, workspace: Workspace) -> RemoteSession:
        """Start a machine; the first call uploads the files."""
        with _translate_errors(self._settings):
            from e2b_code_interpreter import AsyncSandbox

            sandbox = await AsyncSandbox.create(
                template=self._settings.template,
                timeout=_lifetime(self._settings),
                metadata={"made-by": "maniple"},
                **_network(self._settings),
                **_access(self._settings),
            )
            async with close_on_failure(sandbox.kill):
                directory = (await sandbox.commands.run(make_workspace(), user="root")).stdout.strip()
                context = await sandbox.create_code_context(cwd=directory)
        return RemoteSession(
            E2BMachine(sandbox, context, directory, self._settings), workspace, self._settings
        )


class E2BMachine(RemoteMachine):
    """One machine of E2B."""

    def __init__(
        self, sandbox: "AsyncSandbox", context: "Context", directory: str, settings: SandboxSettings
    ) -> None:
        self._sandbox = sandbox
        self._context = context
        self._directory = directory
        self._settings = settings

    async def python(self, code: str, output: CallOutput) -> CallOutcome:
        """Run code in the interpreter's context."""
        with _translate_errors(self._settings):
            execution = await self._sandbox.run_code(
                code,
                context=self._context,
                on_stdout=lambda piece: output.add("stdout", piece.line),
                on_stderr=lambda piece: output.add("stderr", piece.line),
                timeout=0,
            )
        if execution.error is not None:
            trace = execution.error.traceback or f"{execution.error.name}: {execution.error.value}"
            output.add("stderr", _COLOURS.sub("", trace))
        return CallOutcome(int(execution.error is not None), _value(execution), tuple(_figures(execution)))

    async def bash(self, command: str, output: CallOutput) -> CallOutcome:
        """Run a command; a cancellation kills all its processes."""
        mark = secrets.token_hex(8)
        with _translate_errors(self._settings):
            handle = await self._sandbox.commands.run(
                command,
                background=True,
                envs={CALL_MARK: mark},
                cwd=self._directory,
                on_stdout=lambda text: output.add("stdout", text),
                on_stderr=lambda text: output.add("stderr", text),
                timeout=0,
                retain_output=False,
            )
            try:
                return CallOutcome(await _exit_code(handle))
            except BaseException:  # the command must end with the wait
                await asyncio.shield(self._kill(mark))
                raise

    async def restart_python(self) -> None:
        """Give the context a new kernel."""
        with _translate_errors(self._settings):
            await self._sandbox.restart_code_context(self._context)

    async def extend_lifetime(self) -> None:
        """Let the machine live for another idle time."""
        with _translate_errors(self._settings):
            await self._sandbox.set_timeout(_lifetime(self._settings))

    async def close(self) -> None:
        """Kill the machine."""
        with _translate_errors(self._settings):
            await self._sandbox.kill()

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        """The files of the working directory."""
        return read_listing(await self._printed(list_files(self._directory, limit)))

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """One file, as it streams in."""
        from e2b import InvalidArgumentException, NotFoundException

        content = bytearray()
        with _translate_errors(self._settings):
            try:
                reader = await self._sandbox.files.read(f"{self._directory}/{path}", format="stream")
            except (NotFoundException, InvalidArgumentException):
                raise FileError(f"{path!r} could not be read in the sandbox.") from None
            async with reader:
                async for piece in reader:
                    content += piece
                    if len(content) > limit_bytes:
                        raise FileError(f"{path!r} has more than the {limit_bytes} bytes that can be stored.")
        return bytes(content)

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files."""
        from e2b.sandbox.filesystem.filesystem import WriteEntry

        entries = [WriteEntry(path=f"{self._directory}/{path}", data=content) for path, content in files]
        with _translate_errors(self._settings):
            await self._sandbox.files.write_files(entries)

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        for command in remove_files(self._directory, paths):
            await self._printed(command)

    async def _kill(self, mark: str) -> None:
        await self._printed(kill_call(mark))

    async def _printed(self, command: str) -> str:
        from e2b import CommandExitException

        with _translate_errors(self._settings):
            try:
                return (await self._sandbox.commands.run(command)).stdout
            except CommandExitException as error:
                return error.stdout


async def _exit_code(handle: Any) -> int:
    from e2b import CommandExitException

    try:
        return (await handle.wait()).exit_code
    except CommandExitException as error:
        return error.exit_code if error.exit_code >= 0 else 137


def _value(execution: "Execution") -> str:
    main = next((result for result in execution.results if result.is_main_result), None)
    return (main.text or "")[:_VALUE_CHARACTERS] if main is not None else ""


def _figures(execution: "Execution") -> Iterator[bytes]:
    for result in execution.results[:MAX_FIGURES]:
        if result.png and len(result.png) <= MAX_FIGURE_BYTES * 4 // 3:
            try:
                yield base64.b64decode(result.png)
            except (binascii.Error, ValueError):
                continue


def _lifetime(settings: SandboxSettings) -> int:
    wanted = settings.idle_seconds + settings.timeout_seconds + _SPARE_SECONDS
    return int(min(wanted, _MAX_SECONDS))


def _network(settings: SandboxSettings) -> dict[str, Any]:
    if settings.network == "none":
        return {"allow_internet_access": False}
    return {"network": {"allow_out": list(settings.allow_hosts), "deny_out": [_EVERYWHERE]}}


def _access(settings: SandboxSettings) -> dict[str, Any]:
    return {"api_key": settings.e2b_api_key.get_secret_value()} if settings.e2b_api_key else {}


@contextmanager
def _translate_errors(settings: SandboxSettings) -> Iterator[None]:
    """Raise errors of the SDK again as `SandboxError`, with what to do."""
    import httpx
    from e2b import exceptions

    try:
        yield
    except exceptions.AuthenticationException:
        raise SandboxError("E2B refused the key; correct E2B_API_KEY in .env.") from None
    except exceptions.RateLimitException:
        raise SandboxError("E2B allows no more sandboxes now; wait, or lower `sandbox.concurrent`.") from None
    except exceptions.NotFoundException as error:
        raise SandboxError(f"E2B has no such sandbox any more ({error}); run the code again.") from None
    except exceptions.SandboxException as error:
        remedy = " Correct `sandbox.template` in conf.yaml." if "template" in str(error) else ""
        raise SandboxError(f"E2B reported an error: {error}.{remedy}") from error
    except (httpx.TransportError, OSError) as error:
        raise SandboxError(
            f"E2B cannot be reached: {type(error).__name__}. Check the network, and https://status.e2b.dev."
        ) from error
