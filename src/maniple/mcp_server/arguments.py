"""What the tools are called with; everything is bounded, and what is unknown is refused."""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from maniple.api.schemas import ThreadId
from maniple.errors import ManipleError
from maniple.graph import RunOptions
from maniple.runs import RunRequest

LONGEST_QUESTION = 200_000
"""In characters; `server.max_body_bytes` bounds a whole request over HTTP."""
_MOST_FAULTS = 5


class WrongArguments(ManipleError):
    """A tool was called with what does not fit."""

    code = "invalid_request"


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


_Question = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_QUESTION, description="The task or question, in any language."),
    AfterValidator(_says_something),
]


class Arguments(BaseModel):
    """What a tool is called with."""

    model_config = ConfigDict(extra="forbid")


class AskTeam(Arguments):
    """The arguments of `ask_team`."""

    question: _Question
    thread_id: ThreadId | None = Field(
        default=None,
        description="Goes on with this conversation. Where its run waits for a word, the question is that.",
    )
    deep_thinking: bool = Field(default=False, description="Plan with the reasoning model.")
    search_first: bool = Field(default=False, description="Search before planning.")
    review_plan: bool = Field(default=False, description="Show the plan, and wait for a word on it.")
    agent: str = Field(
        default="", max_length=100, description="Who answers alone, without a plan; else the whole team."
    )

    def as_run(self, thread_id: str | None, owner: str) -> RunRequest:
        """Return the run that is asked for."""
        options = RunOptions(
            deep_thinking_mode=self.deep_thinking,
            search_before_planning=self.search_first,
            auto_accepted_plan=not self.review_plan,
            agent=self.agent,
        )
        return RunRequest([HumanMessage(self.question)], thread_id, options, owner)


class MakePlan(Arguments):
    """The arguments of `plan`."""

    question: _Question

    def as_run(self, owner: str) -> RunRequest:
        """Return a run that waits when it has its plan."""
        return RunRequest([HumanMessage(self.question)], None, RunOptions(auto_accepted_plan=False), owner)


class GetRun(Arguments):
    """The arguments of `get_run`."""

    run_id: str = Field(pattern=r"^[A-Za-z0-9-]{1,200}$", description="As ask_team or plan told it.")


def read(takes: type[Arguments], given: Mapping[str, Any]) -> Any:
    """Return the arguments of a tool; raises `WrongArguments`, which does not repeat what was given."""
    try:
        return takes.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
    told = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"[:300] for one in faults]
    raise WrongArguments("; ".join(told[:_MOST_FAULTS]))
