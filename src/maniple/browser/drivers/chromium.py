"""A Chromium that is started here."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from maniple.browser.drivers.connection import Connection
from maniple.browser.upstream import dial
from maniple.config import BrowserSettings
from maniple.egress import ConnectionLimits, EgressResolver, open_socks_proxy
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connected
    from playwright.async_api import Playwright

# Playwright's own arguments keep Chromium from calling home; these leave it no way around the proxy:
# not for loopback, not by names of its own resolving, not by UDP.
_NO_WAY_AROUND = (
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
)

_MEGABYTE = 1_000_000


class Chromium(Connection):
    """`Contexts` of a Chromium process that nothing but its own proxy connects to the world.

    With a `port` other programs on this machine can drive it, too.

    Raises:
        ConfigError: `browser.proxy_server` is not the address of an HTTP proxy.
    """

    def __init__(
        self, settings: BrowserSettings, executable: Path, resolve: EgressResolver, port: int | None = None
    ) -> None:
        super().__init__(self._launch)
        self._settings = settings
        self._executable = executable
        self._resolve = resolve
        self._dial = dial(settings)
        self._port = port

    async def _launch(self, playwright: "Playwright", stack: AsyncExitStack) -> "Connected":
        from playwright.async_api import Error

        proxy = await stack.enter_async_context(
            open_socks_proxy(self._resolve, self._dial, _limits(self._settings))
        )
        own_door = () if self._port is None else (f"--remote-debugging-port={self._port}",)
        try:
            return await playwright.chromium.launch(
                executable_path=self._executable,
                headless=self._settings.headless,
                # Root cannot have Chromium's sandbox.
                chromium_sandbox=os.geteuid() != 0,
                args=[f"--proxy-server=socks5://127.0.0.1:{proxy}", *_NO_WAY_AROUND, *own_door],
                # No secrets for a process that runs pages; a window needs to find its screen.
                env={"LANG": "C.UTF-8"} if self._settings.headless else None,
                # Who started us decides what a signal means; we are told by being closed.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise BrowserError(_launch_sentence(self._executable, str(error))) from error


def _limits(settings: BrowserSettings) -> ConnectionLimits:
    # A file may be as large as the settings say, and comes with a head.
    return ConnectionLimits(
        bytes_each_way=max(ConnectionLimits().bytes_each_way, settings.max_download_bytes + _MEGABYTE)
    )


def _launch_sentence(executable: Path, message: str) -> str:
    if "No usable sandbox" in message:
        return "Chromium cannot start its sandbox here; the operator must allow this user user namespaces."
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return f"Chromium ({executable}) did not start: {lines[0] if lines else 'no reason was given'}"
