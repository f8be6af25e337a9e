"""The tasks of a batch, as a person gives them, and the records that are made of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import HumanMessage

from maniple.batches.answer_rules import AnswerRule, InvalidBatch
from maniple.redaction import Redactor
from maniple.runs import RunRequest
from maniple.scope.budget import Budget
from maniple.store import Batch, BatchDriver, BatchItem, BatchTable
from maniple.text import fix_surrogates

MAX_ITEMS = 10_000
"""How many items a batch may have."""
MAX_ITEM_CHARACTERS = 100_000
_FIELD = "input"


@dataclass(frozen=True, slots=True)
class BatchSpecification:
    """What is asked of a batch: `parallel` runs at a time, one budget, and what each answer must be."""

    name: str = ""
    parallel: int = 4
    attempts: int = 1
    budget: Budget = field(default_factory=Budget)
    rule: AnswerRule = field(default_factory=AnswerRule)


def parse_lines(lines: Iterable[str]) -> list[str]:
    """Return the tasks of a JSONL file: a text, or an object with the text in `input`, in each line.

    Empty lines are left out. Raises `InvalidBatch` with the number of the line.
    """
    tasks = list[str]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            tasks.append(_parse_line(line, number))
        if len(tasks) > MAX_ITEMS:
            raise InvalidBatch(f"A batch has at most {MAX_ITEMS:,} items. Split the file.")
    return tasks


def _parse_line(line: str, number: int) -> str:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidBatch(f"Line {number} is no JSON: {error}.") from error
    text = cast("dict[str, Any]", found).get(_FIELD) if isinstance(found, dict) else found
    if not isinstance(text, str) or not text.strip():
        raise InvalidBatch(f'Line {number} has no task. Write a text, or {{"{_FIELD}": "…"}}.')
    return text


def make_batch(
    asked: BatchSpecification, tasks: Sequence[str], request: RunRequest, driver: BatchDriver, now: float
) -> tuple[Batch, list[BatchItem]]:
    """Return the records of a new batch; raises `InvalidBatch`. `request` is that of each run."""
    asked.rule.require_valid()
    if not 0 < len(tasks) <= MAX_ITEMS:
        raise InvalidBatch(f"A batch has 1 to {MAX_ITEMS:,} items; this one has {len(tasks):,}.")
    if long := next((at for at, one in enumerate(tasks, 1) if len(one) > MAX_ITEM_CHARACTERS), 0):
        raise InvalidBatch(f"Item {long} has more than {MAX_ITEM_CHARACTERS:,} characters.")
    batch = Batch(
        batch_id=str(uuid4()),
        owner=request.owner,
        driver=driver,
        name=fix_surrogates(asked.name),
        request=replace(request, messages=[HumanMessage("")]).to_json(),
        budget=json.dumps(asdict(asked.budget)),
        rule=asked.rule.model_dump_json(),
        parallel=asked.parallel,
        attempts=asked.attempts,
        created_at=now,
    )
    return batch, [BatchItem(number, task) for number, task in enumerate(tasks, 1)]


def without_secrets(
    batch: Batch, items: Sequence[BatchItem], redactor: Redactor
) -> tuple[Batch, list[BatchItem]]:
    """Return a batch with its texts redacted. In a thread: it may have megabytes."""
    return replace(batch, name=redactor.text(batch.name)), [
        replace(one, input=redactor.text(one.input)) for one in items
    ]


async def change_limits(
    batches: BatchTable, batch: Batch, budget: Budget | None = None, parallel: int | None = None
) -> Batch:
    """Store a new budget of a batch, for which all that it has used counts, and its new `parallel`.

    Returns the changed batch; None leaves a limit as it is.
    """
    changed = replace(
        batch,
        budget=batch.budget if budget is None else json.dumps(asdict(budget)),
        parallel=parallel or batch.parallel,
    )
    if changed != batch:
        await batches.set_limits(batch.batch_id, changed.budget, changed.parallel)
    return changed


async def retry_batch(batches: BatchTable, batch: Batch) -> None:
    """Have the items without an accepted answer done again."""
    for state in ("rejected", "failed", "left_out"):
        await batches.change_all(batch.batch_id, state, "waiting", "")
    await batches.set_open(batch.batch_id, is_open=True)
