"""The outline of a long report: its form as JSON, and the sections that are written from it."""

import asyncio
import re
from typing import Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from maniple.llms import read_json
from maniple.types import is_list

LEAST_SECTIONS, MOST_SECTIONS = 3, 12
MAX_OUTLINE_CHARACTERS = 60_000
"""A longer answer is no outline."""
_BEGINS = re.compile(r"\s*(?:`{3,}\w{0,10}\s*)?\{")
_MAY_BEGIN = re.compile(r"\s*(?:`{1,4}(?:\w{0,10}\s*)?)?\Z")
_NUMBER = re.compile(r"\d{1,4}")
_HEADING_MARKS = re.compile(r"^#{1,6}\s+")
_TITLE_CHARACTERS = 300


class OutlineSection(BaseModel):
    """A section that is to be written."""

    heading: str = Field(min_length=1, max_length=_TITLE_CHARACTERS)
    answers: str = ""
    """What it answers."""
    sources: list[int] = []
    """The numbers of the sources that it uses."""
    steps: list[int] = []
    """The positions in the plan of the steps whose results it uses."""

    @field_validator("sources", "steps", mode="before")
    @classmethod
    def _takes_numbers_in_any_form(cls, value: Any) -> Any:
        values = value if is_list(value) else [value]
        return [int(number) for one in values for number in _NUMBER.findall(str(one))]

    @field_validator("heading", mode="after")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        return _HEADING_MARKS.sub("", " ".join(value.split()))


class ReportOutline(BaseModel):
    """The title of a report, its introduction, and its sections in order."""

    title: str = Field(min_length=1, max_length=_TITLE_CHARACTERS)
    introduction: str = ""
    sections: list[OutlineSection] = Field(min_length=LEAST_SECTIONS, max_length=MOST_SECTIONS)

    @field_validator("title", mode="after")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        return _HEADING_MARKS.sub("", " ".join(value.split()))

    def describe(self) -> str:
        """Return the title and the sections as lines for a prompt."""
        lines = [
            f"{number}. {one.heading}" + (f": {one.answers}" if one.answers else "")
            for number, one in enumerate(self.sections, start=1)
        ]
        return "\n".join([f"# {self.title}", *lines])


def may_be_outline(begun: str) -> bool | None:
    """Return whether an answer begins as JSON does; None while its beginning does not tell."""
    if _BEGINS.match(begun):
        return True
    return None if _MAY_BEGIN.match(begun[:40]) and len(begun) < 40 else False


async def read_outline(answer: str) -> ReportOutline:
    """Return the outline in an answer. Raises `ValueError` with a text for the model if there is none."""
    if len(answer) > MAX_OUTLINE_CHARACTERS:
        raise ValueError("it is too long for an outline")
    value = await asyncio.to_thread(read_json, answer)
    try:
        return ReportOutline.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error
