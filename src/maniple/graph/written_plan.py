"""A plan as it was written, by the planner or a user, brought into the form in which it is worked through."""

from collections.abc import Iterable, Mapping, Sequence

from maniple.graph.plan import Plan, PlannedStep

_Numbered = tuple[int, PlannedStep]


def normalised(plan: Plan, members: Sequence[str], max_steps: int) -> Plan:
    """Return the plan with a final report and each member's consecutive steps joined.

    Raises `ValueError` with words for the planner when a step names nobody on the team, or there are
    more than `max_steps`.
    """
    strangers = sorted({step.agent_name for step in plan.steps} - set(members))
    if strangers:
        raise ValueError(
            f"agent_name {', '.join(strangers)} is not on the team; use only {', '.join(members)}"
        )
    reports = [step for step in plan.steps if step.agent_name == "reporter"]
    report = (
        reports[-1].model_copy(update={"needs": None})
        if reports
        else PlannedStep(agent_name="reporter", title=plan.title, description=plan.title)
    )
    numbered = enumerate(plan.steps, start=1)
    groups = _groups((number, step) for number, step in numbered if step.agent_name != "reporter")
    places = {number: place for place, group in enumerate(groups, start=1) for number, _ in group}
    steps = [*(_joined(group, places) for group in groups), report]
    if len(steps) > max_steps:
        raise ValueError(f"the plan has {len(steps)} steps; use at most {max_steps}")
    return plan.model_copy(update={"steps": steps})


def _groups(work: Iterable[_Numbered]) -> list[list[_Numbered]]:
    groups: list[list[_Numbered]] = []
    for number, step in work:
        if groups and groups[-1][0][1].agent_name == step.agent_name:
            groups[-1].append((number, step))
        else:
            groups.append([(number, step)])
    return groups


def _joined(group: Sequence[_Numbered], places: Mapping[int, int]) -> PlannedStep:
    steps = [step for _, step in group]
    return PlannedStep(
        agent_name=steps[0].agent_name,
        title="; ".join(step.title for step in steps),
        description="\n".join(step.description for step in steps),
        note="\n".join(step.note for step in steps if step.note) or None,
        needs=_needs(group, places),
    )


def _needs(group: Sequence[_Numbered], places: Mapping[int, int]) -> list[int] | None:
    """Return the new numbers of what joined steps need; everything where the old ones make no sense."""
    wanted: set[int] = set()
    for number, step in group:
        if step.needs is None or any(not 0 < need < number for need in step.needs):
            return None
        wanted.update(step.needs)
    inside = {number for number, _ in group}
    return sorted({places[need] for need in wanted - inside if need in places})
