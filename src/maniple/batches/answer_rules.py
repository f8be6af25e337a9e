"""What an answer of a batch must be, checked without a model."""

import json
import re
from typing import Any

import re2
from pydantic import BaseModel, ConfigDict, Field

from maniple.errors import ManipleError
from maniple.json_schemas import SchemaNotApplicable, find_misfit, find_schema_mistake, find_unchecked
from maniple.text import shorten

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_SHOWN_CHARACTERS = 200


class InvalidBatch(ManipleError):
    """A batch cannot be as it is described; the message has the reason and the remedy."""

    code = "invalid_batch"


class AnswerRule(BaseModel):
    """An answer must not be empty, and match all that is given.

    `pattern` is a regular expression (RE2) that is found in it; `json_schema` (Draft 2020-12,
    with patterns of RE2) describes the JSON that it is, alone or in one fenced block.
    """

    model_config = ConfigDict(frozen=True)

    pattern: str = Field(default="", max_length=2_000)
    json_schema: dict[str, Any] | bool | None = None

    def require_valid(self) -> None:
        """Raise `InvalidBatch` unless pattern and schema can be used."""
        try:
            _compile(self.pattern)
        except re2.error as error:
            mistake = b" ".join(error.args).decode(errors="replace")
            raise InvalidBatch(f"The pattern is no regular expression of RE2: {mistake}.") from error
        if self.json_schema is None:
            return
        if mistake := find_schema_mistake(self.json_schema):
            raise InvalidBatch(f"The JSON schema is invalid: {mistake}.")
        if unchecked := find_unchecked(self.json_schema):
            raise InvalidBatch(f"The JSON schema cannot be used: {unchecked}. Leave it out.")

    def find_fault(self, answer: str) -> str:
        """Return why an answer is not accepted; "" if it is. May take a while for a large answer."""
        if not answer.strip():
            return "The answer is empty."
        if self.pattern and _compile(self.pattern).search(answer) is None:
            return f"The answer does not match {self.pattern!r}."
        return "" if self.json_schema is None else self._find_json_fault(answer)

    def _find_json_fault(self, answer: str) -> str:
        fenced = _FENCED.fullmatch(answer)
        try:
            value = json.loads(fenced[1] if fenced else answer)
        except (ValueError, RecursionError) as error:
            return f"The answer is no JSON: {shorten(str(error), _SHOWN_CHARACTERS)}."
        try:
            return find_misfit(self.json_schema or False, value)
        except SchemaNotApplicable as error:
            return f"The JSON schema cannot be applied: {error}."


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # it is raised, too
    return re2.compile(pattern, options)
