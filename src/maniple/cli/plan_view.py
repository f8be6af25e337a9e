"""The plan as a list whose steps tick off."""

from rich.text import Text

from maniple.cli.words import STEP_MARKS, one_line
from maniple.events import PlanChanged, PlanStepView

AGENT_STYLES = {
    "coordinator": "cyan",
    "planner": "magenta",
    "researcher": "blue",
    "coder": "green",
    "browser": "yellow",
    "file_manager": "bright_magenta",
    "reporter": "bright_cyan",
}
_STEP_STYLES = {
    "not_started": "dim",
    "in_progress": "bold",
    "blocked": "yellow",
    "completed": "green",
    "failed": "red",
    "skipped": "dim",
}
_OVER = ("completed", "failed", "skipped")


class PlanView:
    """The newest plan, and what changed in it."""

    def __init__(self) -> None:
        self.title = ""
        self.steps: list[PlanStepView] = []
        self.is_new = False

    def update(self, event: PlanChanged) -> list[PlanStepView]:
        """Take the plan over; return the steps whose status has changed, or the reason for it.

        A step may be put in between while the plan runs. A plan that lacks a step of the one before is
        new (`is_new`): nothing has changed in it yet.
        """
        before = {(step.id, step.title): _standing(step) for step in self.steps}
        now = {(step.id, step.title) for step in event.steps}
        self.title, self.steps = event.title, event.steps
        self.is_new = not before or not before.keys() <= now
        if self.is_new:
            return []
        return [
            step
            for step in event.steps
            if before.get((step.id, step.title), _standing(step)) != _standing(step)
        ]

    def title_for(self, agent_name: str) -> str:
        """Return the title of the step that the agent works on, if there is one."""
        under_way = (step for step in self.steps if step.status == "in_progress")
        return next((step.title for step in under_way if step.agent_name == agent_name), "")

    def has_open_work(self) -> bool:
        """Say whether more than the last step, the report, is still to be done."""
        return any(step.status not in _OVER for step in self.steps[:-1])

    def line(self, step: PlanStepView) -> Text:
        """Return one step as ` ✔ 1 coder  Compute`."""
        return self.lines()[self.steps.index(step)]

    def lines(self, most: int | None = None) -> list[Text]:
        """Return the list; of one longer than `most` lines, the part around the present step."""
        steps = self.steps
        width = max((len(step.agent_name) for step in steps), default=0)
        lines = [_line(place, step, width) for place, step in enumerate(steps, start=1)]
        if most is None or len(lines) <= most:
            return lines
        open_places = (place for place, step in enumerate(steps) if step.status not in _OVER)
        current = next(open_places, len(steps) - 1)
        room = max(1, most - 2)
        first = min(max(0, current - 1), len(lines) - room)
        above, below = first, len(lines) - first - room
        head = [Text(f"  … {above} above", style="dim")] if above else []
        foot = [Text(f"  … {below} more", style="dim")] if below else []
        return [*head, *lines[first : first + room], *foot]


def _standing(step: PlanStepView) -> tuple[str, str | None]:
    return step.status, step.reason


def _line(place: int, step: PlanStepView, width: int) -> Text:
    style = _STEP_STYLES.get(step.status, "")
    return Text.assemble(
        (f"{STEP_MARKS.get(step.status, '?')} ", style),
        (f"{place:>2} ", "dim"),
        (f"{step.agent_name:<{width}}  ", AGENT_STYLES.get(step.agent_name, "")),
        (one_line(step.title), "" if step.status == "completed" else style),
        no_wrap=True,
        overflow="ellipsis",
    )
