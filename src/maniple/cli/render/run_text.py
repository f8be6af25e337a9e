"""What the views print of a run: its outcome, its plan, and its questions to the user."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from maniple.cli.text import clean, duration, escape_invisible, one_line
from maniple.events import (
    EffortNotUsed,
    GapsReviewed,
    LeadDecided,
    ModelUnreachable,
    PlanStepView,
    Replacement,
    RunContinued,
    RunInterrupted,
    RunView,
    RunWaiting,
    StepInterrupted,
    describe_next_times,
)
from maniple.text import counted
from maniple.types import RunStatus

EXIT_CODES: Mapping[RunStatus, int] = {
    "completed": 0,
    "failed": 1,
    "budget_exhausted": 4,
    "interrupted": 3,
    "cancelled": 130,
}
AGENT_STYLES: Mapping[str, str] = {
    "coordinator": "cyan",
    "planner": "magenta",
    "researcher": "blue",
    "coder": "green",
    "browser": "yellow",
    "file_manager": "bright_magenta",
    "reporter": "bright_cyan",
}
_RUN_MARKS: Mapping[RunStatus, str] = {
    "completed": "✔",
    "failed": "✘",
    "cancelled": "✘",
    "interrupted": "?",
    "budget_exhausted": "!",
}
REPLACEMENT_TEXTS: Mapping[Replacement, str] = {
    "broken_off": "The model's answer broke off and starts again.",
    "outdated": "This step is done again.",
}
TO_TEAM = "/team "
"""What begins a line for the team while a step asks."""
SHOWN_REPLACEMENT_TEXTS: Mapping[Replacement, str] = {
    "broken_off": "The model's answer broke off and starts again; ignore the text above.",
    "outdated": "This step is done again; its earlier answer is no longer valid.",
}
_STATUS_TEXTS: Mapping[RunStatus, str] = {
    "interrupted": "waiting for your answer",
    "budget_exhausted": "the budget ran out: the answer is partial",
}
_STEP_MARKS: Mapping[str, str] = {
    "not_started": "☐",
    "in_progress": "▶",
    "blocked": "!",
    "completed": "✔",
    "failed": "✘",
    "skipped": "–",
}
_STEP_STYLES: Mapping[str, str] = {
    "not_started": "dim",
    "in_progress": "bold",
    "blocked": "yellow",
    "completed": "green",
    "failed": "red",
    "skipped": "dim",
}
_FINISHED = ("completed", "failed", "skipped")
REPORTER = "reporter"
BLOCK_MARK = "    │ "
"""What stands before each line of an argument of several lines."""
_REVIEW_CHARACTERS = 2_000
_NOT_UNDERSTOOD = "The last answer was not understood, and nothing was decided."


def repeats_answer(run: RunView, tool_name: str) -> bool:
    """Return whether a call has only the answer: an agent that answers alone ends with it."""
    return tool_name == "terminate" and run.plan is not None and run.plan.is_request


def final_status(run: RunView) -> RunStatus:
    """Return how the run ended.

    Events that stop without a status are a failure, and so is a completed run whose steps all failed.
    """
    is_failed = run.status == "completed" and run.has_failed_plan
    return "failed" if is_failed else run.status or "failed"


def exit_code(run: RunView) -> int:
    """Return the program's exit status for a run."""
    return EXIT_CODES[final_status(run)]


def has_answer(run: RunView) -> bool:
    """Return whether the run finished an answer."""
    return run.has_answer


def is_undone(run: RunView) -> bool:
    """Return whether a retry may do more: a run failed, was cancelled, or lacks what nobody rejected."""
    return run.status in ("failed", "cancelled") or any(not gap.rejected for gap in run.gaps)


def run_mark(run: RunView) -> str:
    """Return the sign before the summary of a run: `✔` only if it did all that it was to do."""
    status = final_status(run)
    return "!" if status == "completed" and run.gaps else _RUN_MARKS[status]


def summary_line(run: RunView, seconds: float) -> str:
    """Return status, time and usage in one line; `seconds` is how long the run was shown."""
    status, usage = final_status(run), run.usage
    parts = [_STATUS_TEXTS.get(status, status), duration(seconds)]
    if run.gaps:
        missing = f"{counted(len(run.gaps), 'step')} not complete"
        parts = [f"ended, {missing}" if status == "completed" else f"{parts[0]}, {missing}", parts[1]]
    if run.claims is not None and run.claims.score and run.claims.score not in run.answer:
        parts.append(one_line(clean(run.claims.score.strip("*"))))
    if usage.model_calls:
        parts.append(counted(usage.model_calls, "model call"))
    if tokens := usage.input_tokens + usage.output_tokens:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(
            f"{counted(tokens, 'token')} ({usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out)"
        )
    return " · ".join(parts)


def gap_lines(run: RunView) -> list[str]:
    """Return a line for each step whose result the answer lacks without saying so, safe to print."""
    gaps = run.unstated_gaps
    return [f"Not complete: {one_line(clean(gap.step))} ({one_line(clean(gap.reason))})" for gap in gaps]


def failure_texts(step: PlanStepView, *, verbose: bool) -> list[str]:
    """Return why a step failed, and with `verbose` the error itself."""
    return list(filter(None, (step.reason, step.details if verbose else None)))


def has_open_work(steps: Sequence[PlanStepView]) -> bool:
    """Return whether a step other than the report is not finished."""
    return any(step.status not in _FINISHED for step in steps if step.agent_name != REPORTER)


def plan_lines(steps: Sequence[PlanStepView], most: int | None = None) -> list[Text]:
    """Return a plan's steps as lines like ` ✔ 1 coder  Compute`, safe to print.

    If there are more than `most` lines, return those around the current step.
    """
    width = max((len(step.agent_name) for step in steps), default=0)
    lines = [_step_text(number, step, width) for number, step in enumerate(steps, start=1)]
    if most is None or len(lines) <= most:
        return lines
    open_indexes = (index for index, step in enumerate(steps) if step.status not in _FINISHED)
    current = next(open_indexes, len(steps) - 1)
    room = max(1, most - 2)
    first = min(max(0, current - 1), len(lines) - room)
    above, below = first, len(lines) - first - room
    head = [Text(f"  … {above} above", style="dim")] if above else []
    foot = [Text(f"  … {below} more", style="dim")] if below else []
    return [*head, *lines[first : first + room], *foot]


def plan_line(steps: Sequence[PlanStepView], step: PlanStepView) -> Text:
    """Return the line of one of the steps."""
    return plan_lines(steps)[steps.index(step)]


def decision_line(event: LeadDecided, longest: int = 400) -> str:
    """Return what the lead decided after a failed step, in one line."""
    step = f"step {event.step_id}"
    match event.decision:
        case "retry":
            text = f"{step} is tried again"
        case "reassign":
            text = f"{step} goes to {event.agent_name}"
        case "continue_without":
            text = f"the team goes on without more from {step}"
        case "replan":
            text = "the planner writes the remaining steps again"
        case "finish":
            text = f"the team stops at {step} and reports what it has"
    hint = f" ({event.hint})" if event.hint else ""
    return f"→ {one_line(text + hint, longest)}"


def gap_review_lines(event: GapsReviewed, longest: int = 400) -> list[str]:
    """Return what the lead found open before the report, one line for each fact."""
    lines = [f"? {one.question}{' (no step can answer it)' if one.open else ''}" for one in event.questions]
    lines += [f"+ round {event.round}: {title}" for title in event.steps]
    lines += [f"- not added: {one.title} ({one.reason})" for one in event.refused]
    lines += [f"→ {event.notice}"] if event.notice else []
    return [one_line(line, longest) for line in lines]


def outage_line(event: ModelUnreachable) -> str:
    """Return that the model's endpoint does not answer and is asked again, in one line."""
    tries = f"try {event.attempt}, for up to {duration(event.left_seconds)} more"
    return f"the model endpoint does not answer; trying again ({tries})"


def effort_line(event: EffortNotUsed) -> str:
    """Return that a model works without the effort of the run, in one line."""
    return (
        f"{one_line(clean(event.model))} takes no effort; it works as it does without --effort {event.effort}"
    )


def waiting_line(event: RunWaiting) -> str:
    """Return that the run waits for its model or the store, and how long at most, in one line."""
    what = "model" if event.waiting_for == "model" else "store"
    longest = duration(max(event.until - event.at, 0))
    return (
        f"waiting for the {what}, for up to {longest}; the run goes on by itself ({one_line(event.reason)})"
    )


def continued_line(event: RunContinued) -> str:
    """Return that a run that had waited works again."""
    return f"the {event.waiting_for} is back after {duration(event.seconds)}; the run goes on"


def _step_text(number: int, step: PlanStepView, width: int) -> Text:
    style = _STEP_STYLES.get(step.status, "")
    return Text.assemble(
        (f"{_STEP_MARKS.get(step.status, '?')} ", style),
        (f"{number:>2} ", "dim"),
        (f"{clean(step.agent_name):<{width}}  ", AGENT_STYLES.get(step.agent_name, "")),
        (one_line(clean(step.title)), "" if step.status == "completed" else style),
        no_wrap=True,
        overflow="ellipsis",
    )


def question_kind(question: RunInterrupted) -> str:
    """Return `plan_review`, `approval`, `unknown_result` or `question`."""
    return question.payload.get("reason", "approval") if question.kind == "tool_approval" else question.kind


def describe_question(question: RunInterrupted) -> str:
    """Return what the user decides on, with every argument, safe to print.

    For a plan, which is shown apart, this is only the error of an edited plan.
    """
    payload = question.payload
    match question_kind(question):
        case "plan_review":
            error = payload.get("error")
            return f"The edited plan is not valid: {escape_invisible(str(error))}" if error else ""
        case "approval":
            lines = [f"{_tool_name(payload)} asks for approval. Its arguments:", *_argument_lines(payload)]
            if times := describe_next_times(payload):
                lines.append(escape_invisible(times))
            if error := payload.get("error"):
                lines.append(f"The edited arguments are not valid: {escape_invisible(str(error))}")
            return "\n".join([*lines, *_unclear_lines(payload)])
        case "unknown_result":
            head = f"The program stopped while {_tool_name(payload)} ran. Its result is unknown. Arguments:"
            return "\n".join([head, *_argument_lines(payload), *_unclear_lines(payload)])
        case _:
            return "\n".join([escape_invisible(_question_text(payload)), *_option_lines(question)])


def _unclear_lines(payload: Mapping[str, Any]) -> list[str]:
    return [_NOT_UNDERSTOOD] if payload.get("unclear") else []


def step_question_lines(question: StepInterrupted) -> list[str]:
    """Return what a step asks while others go on, safe to print."""
    return [step_question_head(question), *(f"  {line}" for line in describe_question(question).split("\n"))]


def step_question_head(question: StepInterrupted) -> str:
    """Return who asks, safe to print."""
    return f"? {clean(question.agent_name)} (step {question.step_id}) asks; the others go on."


def name_first(question: RunInterrupted, waiting: int) -> str:
    """Return a line that says which of several questions is to be answered now, safe to print."""
    if question.kind != "tool_approval":
        return f"The first of {waiting} questions:"
    arguments = " ".join(line.strip() for line in _argument_lines(question.payload))
    call = f"{_tool_name(question.payload)} {arguments}"
    return f"The first of {waiting} calls: {one_line(call, _REVIEW_CHARACTERS)}"


def answer_instructions(question: RunInterrupted) -> str:
    """Return how the user can answer."""
    match question_kind(question):
        case "plan_review":
            return "Approve the plan? Enter accepts it, e edits its steps; or write what to change."
        case "approval" if question.payload.get("error"):
            return "e edits the arguments again; n, or n and why not, rejects the call."
        case "approval":
            return "y runs it, e edits the arguments; n, or n and why not, rejects the call."
        case "unknown_result":
            return "again runs the tool again, skip continues without it, result: TEXT says what it returned."
        case _ if question_options(question):
            return "Answer with a number or in your own words."
        case _:
            return "The team waits for your answer."


def command_instructions(question: RunInterrupted) -> str:
    """Return how the user can answer by another command, where no key can be pressed."""
    match question_kind(question):
        case "plan_review":
            return "The plan waits for your review: accept accepts it; any other text says what to change."
        case "approval":
            runs = "" if question.payload.get("error") else "y runs it, "
            return f"{runs}e '{{…}}' gives other arguments; n, or n and why not, rejects the call."
        case _:
            return answer_instructions(question)


def review_texts(step: PlanStepView, question: RunInterrupted) -> list[str]:
    """Return the text below a step's line in a plan review, safe to print.

    It is the description, the note, and what the step waits for unless that is all steps above.
    """
    texts, description = list[str](), clean(step.description)
    if description.strip(" .") != clean(step.title).strip(" ."):
        texts.append(one_line(description, _REVIEW_CHARACTERS))
    # The events of a plan have neither notes nor needs.
    steps = (question.payload.get("plan") or {}).get("steps") or ()
    for place, planned in enumerate(steps):
        if (planned.get("agent_name"), planned.get("title")) != (step.agent_name, step.title):
            continue
        if note := planned.get("note"):
            texts.append(f"Note: {one_line(clean(str(note)), _REVIEW_CHARACTERS)}")
        needs = planned.get("needs")
        if needs is not None and len(needs) < place and step.agent_name != REPORTER:
            texts.append(f"Waits for {', '.join(map(str, needs))}" if needs else "Starts at once")
    return texts


def answer_hint(question: RunInterrupted) -> str:
    """Return the placeholder of an empty prompt."""
    if question_kind(question) == "approval" and question.payload.get("error"):
        return "e / n"
    return {"plan_review": "accept", "approval": "y / n / e", "unknown_result": "again / skip"}.get(
        question_kind(question), "Your answer"
    )


def example_answer(question: RunInterrupted) -> str:
    """Return an answer that can be given on the command line."""
    return {"plan_review": "accept", "approval": "y", "unknown_result": "again"}.get(
        question_kind(question), "your answer"
    )


def question_options(question: RunInterrupted) -> list[str]:
    """Return the answers that the question offers."""
    options = question.payload.get("options")
    return [str(option) for option in options] if isinstance(options, list) else []


def _question_text(payload: Mapping[str, Any]) -> str:
    text = payload.get("question")
    # A graph that embeds the team has a payload of its own.
    return text if isinstance(text, str) else json.dumps(payload, ensure_ascii=False)


def _tool_name(payload: Mapping[str, Any]) -> str:
    return escape_invisible(str(payload.get("tool_name", "A tool")))


def _argument_lines(payload: Mapping[str, Any]) -> Iterator[str]:
    return describe_call(payload.get("tool_input") or {})


def describe_call(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield every argument of a tool call in full, safe to print; those of several lines as a block."""
    if not arguments:
        yield "  (no arguments)"
    for name, value in arguments.items():
        heading, text = argument_texts(name, value)
        if "\n" in text:
            yield heading
            yield from (f"{BLOCK_MARK}{line}" for line in text.split("\n"))
        else:
            yield f"{heading} {text}"


def argument_texts(name: str, value: Any) -> tuple[str, str]:
    """Return the heading and the text of an argument, with every invisible character escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"  {escape_invisible(name)}:", escape_invisible(text)


def _option_lines(question: RunInterrupted) -> Iterator[str]:
    for number, option in enumerate(question_options(question), start=1):
        yield f"  {number}  {escape_invisible(option)}"
