"""Batches: many tasks that are done as runs under one budget, each answer checked by a rule."""

from maniple.batches.answer_rules import AnswerRule, InvalidBatch
from maniple.batches.batch_runner import BatchRunner, open_batch_runner
from maniple.batches.results import read_results, write_csv
from maniple.batches.tasks import (
    MAX_ITEMS,
    BatchSpecification,
    change_limits,
    make_batch,
    parse_lines,
    retry_batch,
)

__all__ = [
    "MAX_ITEMS",
    "AnswerRule",
    "BatchRunner",
    "BatchSpecification",
    "InvalidBatch",
    "change_limits",
    "make_batch",
    "open_batch_runner",
    "parse_lines",
    "read_results",
    "retry_batch",
    "write_csv",
]
