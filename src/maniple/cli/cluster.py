"""`maniple work` and `maniple runs`: the workers of a PostgreSQL database, and runs that nobody drives."""

import asyncio
import json
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, finish_service, read_settings, require_queue
from maniple.errors import ConfigError

if TYPE_CHECKING:
    from maniple.app import App
    from maniple.config import Settings
    from maniple.store import RunRecord

STUCK_SECONDS = 60.0
METRICS_HOST = "127.0.0.1"


def work(
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Most runs that this process drives at once.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the metrics for Prometheus; 0: a free one."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address for --metrics-port; no key protects the metrics.")
    ] = METRICS_HOST,
    config: ConfigOption = None,
) -> None:
    """Drive runs that other processes have accepted, with store.backend postgres.

    \b
    Examples:
      maniple serve --role api          accept requests, and drive no run
      maniple work --concurrency 32     drive up to 32 runs
      maniple work --metrics-port 9100  and show its figures at http://127.0.0.1:9100/metrics

    \b
    Start as many as you like, on any machine that reaches the database. SIGTERM gives its runs
    back at a checkpoint; those of one that was killed go on elsewhere after some seconds.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings, 75 another
    process drives its runs now: start it again (systemd: Restart=always).
    """
    settings = read_settings(config, opens_team=True)
    if concurrency is not None:
        runs = settings.runs.model_copy(update={"worker_concurrency": concurrency})
        settings = settings.model_copy(update={"runs": runs})
    address = None if metrics_port is None else (metrics_host, metrics_port)
    finish_service(work_until_stopped(settings, address))


async def work_until_stopped(settings: "Settings", metrics_address: tuple[str, int] | None = None) -> int:
    """Drive runs until SIGINT or SIGTERM; raises `ManipleError` if the team cannot be opened."""
    from maniple.app import open_app
    from maniple.cli.render import Consoles
    from maniple.cli.services import configure_service_logs

    require_queue(settings)
    configure_service_logs(settings)
    consoles, stopped = Consoles.of_this_process(), asyncio.Event()
    progress = consoles.progress()
    try:
        progress.step("starting the worker")
        async with open_app(settings, kind="server", role="worker", progress=progress) as app:
            progress.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            with ExitStack() as stack:
                if metrics_address is not None:
                    consoles.note(f"Metrics: {_serve_metrics(app, metrics_address, stack)}")
                consoles.note(f"Driving up to {app.engine_config.working} runs. Press Ctrl-C to stop.")
                await stopped.wait()
                await app.engine.drain()
    finally:
        progress.close()
    return 0


def _serve_metrics(app: "App", address: tuple[str, int], stack: ExitStack) -> str:
    """Serve the metrics until the stack closes; return their URL. Raises `ConfigError`."""
    from maniple.cli.services import url_of

    host, port = address
    try:
        port = stack.enter_context(app.metrics.serving(host, port))
    except OSError as error:
        raise ConfigError(
            f"The metrics cannot be served on {host}, port {port}: {error.strerror or error}. "
            "Set another address with --metrics-host and --metrics-port; port 0 selects a free port."
        ) from error
    return f"{url_of(host, port)}/metrics"


def runs(
    stuck: Annotated[bool, typer.Option("--stuck", help="Only runs that nobody drives.")] = False,
    seconds: Annotated[float, typer.Option(min=0, help="How long a run waits at least.")] = STUCK_SECONDS,
    config: ConfigOption = None,
) -> None:
    """List the newest runs, or those that nobody drives: one JSON object a line.

    \b
    Examples:
      maniple runs
      maniple runs --stuck
      maniple runs --stuck --seconds 600

    \b
    A stuck run began in a process that has died, or has waited longer than --seconds. Where
    workers are at work this list is empty after some seconds.

    \b
    Exit status: 0 printed, 1 the database cannot be read, 2 wrong usage or settings.
    """
    finish(_print_runs(read_settings(config), seconds if stuck else None))


async def _print_runs(settings: "Settings", stuck_seconds: float | None) -> int:
    from maniple.store.configured import open_configured_store

    if stuck_seconds is not None:
        require_queue(settings)
    async with open_configured_store(settings, server=False) as store:
        if stuck_seconds is None:
            found = await store.runs.list(None)
        else:
            from maniple.store.configured import list_stuck_runs

            found = await list_stuck_runs(store, stuck_seconds)
    for run in found:
        sys.stdout.write(f"{_describe(run)}\n")
    return 0


def _describe(run: "RunRecord") -> str:
    shown = ("run_id", "thread_id", "owner", "kind", "status", "process", "recoveries", "stalls")
    fields = asdict(run)
    age = round(time.time() - run.created_at, 1)
    return json.dumps({name: fields[name] for name in shown} | {"age_seconds": age}, ensure_ascii=False)
