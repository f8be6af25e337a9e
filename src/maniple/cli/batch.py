"""`maniple batch`: many tasks from a file, each done as a run, with their results as a file."""

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from maniple.cli.options import ConfigOption, finish, parse_budget, read_settings, refuse_options
from maniple.types import Depth, Effort

if TYPE_CHECKING:
    from maniple.batches import BatchSpecification
    from maniple.config import Settings
    from maniple.runs import RunRequest
    from maniple.scope.budget import Budget
    from maniple.store import Batch, Store

_LOOK_SECONDS = 0.1
_REPORT_SECONDS = 10.0
_UNCHANGED = "cannot be changed: the batch has its own. --budget and --parallel can."


def batch(  # noqa: PLR0913 - typer reads the options from the signature
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="Tasks as JSONL.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        str, typer.Option(metavar="ID", help="Continue a batch that was cut off.", show_default=False)
    ] = "",
    retry: Annotated[
        str, typer.Option(metavar="ID", help="Do again what was not accepted.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", dir_okay=False, help="Results, .jsonl or .csv.  [default: JSONL to stdout]"
        ),
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, max=100, help="Most runs at the same time.  [default: 4]")
    ] = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, max=10, help="Most runs of one item.  [default: 1]")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Limits of the whole batch: tokens=2m,seconds=3600.", show_default=False)
    ] = "",
    pattern: Annotated[
        str, typer.Option(help="Accept only answers that match this (RE2).", show_default=False)
    ] = "",
    schema: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Accept only JSON of this JSON schema.", show_default=False
        ),
    ] = None,
    depth: Annotated[Depth | None, typer.Option(help="How far to research.", show_default=False)] = None,
    effort: Annotated[
        Effort | None, typer.Option(help="How much the models are to reason.", show_default=False)
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Do each line of a file as a task, and write the answers.

    \b
    Examples:
      maniple batch tasks.jsonl -o results.csv
      maniple batch tasks.jsonl --parallel 8 --budget tokens=2m --attempts 2 > results.jsonl
      maniple batch tasks.jsonl --schema answer.schema.json
      maniple batch --resume 1a2b3c4d -o results.csv
      maniple batch --retry 1a2b3c4d --budget tokens=4m -o results.csv

    \b
    Each line is a JSON text, or an object with the task in "input". Each item is done once, also
    if the program is killed and the batch resumed. An empty answer is never accepted. When the
    budget is used up, no more items are started; those that work may exceed it together. With
    --resume or --retry, --budget and --parallel replace those of the batch; what was used before
    counts.

    \b
    Exit status: 0 every answer was accepted, 1 some were not or the team cannot be opened, 2
    wrong usage or settings, 130 interrupted (resume it).
    """
    if sum(map(bool, (file, resume, retry))) != 1:
        raise typer.BadParameter("give a file, or --resume ID, or --retry ID.", param_hint="FILE")
    _require_writable(output)
    settings = read_settings(config, opens_team=True)
    from maniple.batches import AnswerRule, BatchSpecification, InvalidBatch, parse_lines
    from maniple.scope.budget import Budget

    try:
        limits = parse_budget(budget, settings.models) if budget else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from error
    if file is None:
        given = {"--attempts": attempts, "--pattern": pattern, "--schema": schema}
        refuse_options(given | {"--depth": depth, "--effort": effort}, _UNCHANGED)
        finish(_continue(settings, _Continued(resume or retry, bool(retry), limits, parallel), output))
    try:
        described = json.loads(schema.read_text(encoding="utf-8")) if schema else None
        rule = AnswerRule(pattern=pattern, json_schema=described)
        rule.require_valid()
    except (ValueError, OSError, InvalidBatch) as error:
        raise typer.BadParameter(str(error), param_hint="--pattern, --schema") from error
    try:
        with file.open(encoding="utf-8-sig") as lines:
            tasks = parse_lines(lines)
    except UnicodeDecodeError as error:
        raise typer.BadParameter("it is no UTF-8 text.", param_hint="FILE") from error
    except (OSError, InvalidBatch) as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    asked = BatchSpecification(file.name, parallel or 4, attempts or 1, limits or Budget(), rule)
    finish(_begin(settings, asked, tasks, _make_request(depth, effort), output))


def _require_writable(output: Path | None) -> None:
    """Refuse a file that could not be written when all runs have ended."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise typer.BadParameter(f"the folder {output.parent} does not exist.", param_hint="--output")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise typer.BadParameter(f"{output} cannot be written.", param_hint="--output")


def _make_request(depth: Depth | None, effort: Effort | None) -> "RunRequest":
    from langchain_core.messages import HumanMessage

    from maniple.graph import RunOptions
    from maniple.runs import RunRequest

    return RunRequest([HumanMessage("")], options=RunOptions(depth=depth or "", effort=effort or ""))


async def _begin(
    settings: "Settings",
    asked: "BatchSpecification",
    tasks: list[str],
    request: "RunRequest",
    output: Path | None,
) -> int:
    from maniple.batches import InvalidBatch, make_batch
    from maniple.batches.tasks import without_secrets
    from maniple.cli.process import WrongUsage
    from maniple.cli.store_admin import open_database
    from maniple.config.secrets import redactor_of

    try:
        made = await asyncio.to_thread(make_batch, asked, tasks, request, "terminal", time.time())
    except InvalidBatch as error:
        raise WrongUsage(str(error)) from error
    batch, items = await asyncio.to_thread(without_secrets, *made, redactor_of(settings))
    async with open_database(settings) as store:
        await store.batches.add(batch, items)
    return await _work(settings, batch, output)


@dataclass(frozen=True, slots=True)
class _Continued:
    """A batch that goes on, by the beginning of its id; `is_retried`: with what was not accepted."""

    name: str
    is_retried: bool
    budget: "Budget | None"
    parallel: int | None


async def _continue(settings: "Settings", asked: _Continued, output: Path | None) -> int:
    from maniple.batches import change_limits, retry_batch
    from maniple.cli.process import WrongUsage
    from maniple.cli.store_admin import TERMINAL_OWNER, open_database

    async with open_database(settings) as store:
        found = await store.batches.list_named(TERMINAL_OWNER, asked.name)
        if len(found) != 1:
            raise WrongUsage(f"{len(found) or 'No'} batches have an id that begins with {asked.name!r}.")
        [batch] = found
        if batch.driver != "terminal":
            raise WrongUsage("The server works on this batch: POST /api/batches/ID/retry continues it.")
        batch = await change_limits(store.batches, batch, asked.budget, asked.parallel)
        if asked.is_retried:
            await retry_batch(store.batches, batch)
    return await _work(settings, batch, output)


async def _work(settings: "Settings", batch: "Batch", output: Path | None) -> int:
    """Work on a batch to its end and write its results; return the exit status."""
    from maniple.app import open_app
    from maniple.batches import BatchRunner

    _note(f"Batch {batch.batch_id}; to continue it: maniple batch --resume {batch.batch_id[:8]}")
    async with open_app(settings, kind="chat") as app:
        runner = BatchRunner(app.store, app.engine, "terminal")
        reported = time.monotonic()
        while await runner.advance(batch):
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                _note(await _describe(app.store, batch))
            await asyncio.sleep(_LOOK_SECONDS)
        _note(await _describe(app.store, batch))
        await _write(app.store, batch, output)
        counts = (await app.store.batches.total(batch.batch_id)).counts
    return 0 if set(counts) == {"accepted"} else 1


async def _describe(store: "Store", batch: "Batch") -> str:
    totals = await store.batches.total(batch.batch_id)
    states = ", ".join(
        f"{count:,} {state.replace('_', ' ')}" for state, count in sorted(totals.counts.items())
    )
    return f"{states}; {totals.tokens:,} tokens"


async def _write(store: "Store", batch: "Batch", output: Path | None) -> None:
    if output is None:
        await _write_lines(store, batch, sys.stdout, as_csv=False)
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        await _write_lines(store, batch, file, as_csv=output.suffix.casefold() == ".csv")


async def _write_lines(store: "Store", batch: "Batch", file: IO[str], *, as_csv: bool) -> None:
    from maniple.batches import read_results, write_csv
    from maniple.batches.results import write_json_line

    if as_csv:
        file.write(write_csv(None))
    result: dict[str, Any]
    async for result in read_results(store, batch):
        file.write(write_csv(result) if as_csv else write_json_line(result))


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
