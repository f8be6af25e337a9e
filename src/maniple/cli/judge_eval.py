"""`maniple eval judge`: measures with labelled claims how well a model judges, and stores the result."""

import asyncio
import json as json_module
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maniple.cli.options import ConfigOption, finish, read_settings
from maniple.cli.process import WrongUsage

if TYPE_CHECKING:
    from maniple.claims.judging import JudgeRounds, PendingClaim
    from maniple.claims.verdict import Verdict
    from maniple.config import Settings
    from maniple.evidence import MemoryEvidence
    from maniple.llms.judge_measurements import JudgeMeasurement

Label = Literal["right", "wrong"]
MARKED = ("contradicted", "absent")

evaluation = typer.Typer(name="eval", no_args_is_help=True, help="Measure models with labelled material.")


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A line of `claims.jsonl`: Markdown with citations, and whether it is right."""

    report: str
    label: Label
    kind: str
    why: str = ""
    """For the reader: what is wrong, or which calculation explains it."""


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim of a line: what the judge alone says about it, and what a report would say."""

    text: str
    judged: str
    """The kind of the judge's verdict, or "not checked"."""
    why: str
    """The reason that the judge gave, or why its answer does not count."""
    final: "Verdict"


@dataclass(slots=True)
class JudgeScore:
    """What a judge said about the claims of a set. A line is marked if one of its claims is."""

    totals: Counter[tuple[Label, str]] = field(default_factory=Counter[tuple[Label, str]])
    marked: Counter[tuple[Label, str]] = field(default_factory=Counter[tuple[Label, str]])
    with_rules: Counter[Label] = field(default_factory=Counter[Label])
    """Lines that are marked in a report: by what code has proved, else by the judge, else by a rule."""
    verdicts: Counter[tuple[Label, str]] = field(default_factory=Counter[tuple[Label, str]])
    not_checked: int = 0
    claims: int = 0
    """The parts that the judge was asked about."""
    calls: int = 0
    mistakes: list[str] = field(default_factory=list[str])
    """What the judge, or rules and judge, marked wrongly or missed, and what was not checked."""

    def count(self, label: Label) -> tuple[int, int]:
        """Return how many lines with a label the judge marked, and how many there are."""
        hits, total = (
            sum(number for (one, _), number in some.items() if one == label)
            for some in (self.marked, self.totals)
        )
        return hits, total


@evaluation.command("judge")
def eval_judge(
    folders: Annotated[
        list[Path],
        typer.Option(
            "--set", metavar="FOLDER", exists=True, file_okay=False, help="Labelled set; repeatable."
        ),
    ],
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print each mistake, and each claim not checked.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Measure how well the model of evidence.llm judges claims, and store the result.

    \b
    Examples:
      maniple eval judge --set claims
      maniple eval judge --set first --set second --verbose

    \b
    A set has its sources in sources/NUMBER.md, and claims.jsonl with an object a line: report
    (Markdown that cites the sources by number), label (right or wrong) and kind (any word).
    Every claim is put to the model, in at most one call for 20, even where rules would decide it.

    \b
    With evidence.judge: auto, a model judges the claims of reports if at most 3 % of 300 honest
    claims or more were marked, and at least 85 % of the wrong ones. The result counts for 90
    days, and for the prompt with which it was made; maniple doctor shows it.

    \b
    Exit status: 0 measured, 1 the model failed, 2 wrong usage, settings or set.
    """
    finish(_measure(read_settings(config), folders, verbose=verbose))


async def _measure(settings: "Settings", folders: Sequence[Path], *, verbose: bool) -> int:
    from maniple.agents.claim_judge import find_objection, name_prompt
    from maniple.agents.team_models import open_models
    from maniple.cli.render import Consoles
    from maniple.llms.capabilities import CapabilityCache, capabilities_of
    from maniple.llms.judge_measurements import JudgeMeasurement
    from maniple.store.shared_state import open_state

    consoles = Consoles.of_this_process()
    score = JudgeScore()
    async with open_models(settings, consoles.progress()) as (models, _):
        await models.load()
        model: Any = models.get(settings.evidence.llm)
        for folder in folders:
            consoles.note(f"Asking {model.endpoint} about {folder}.")
            await measure_set(model, folder, score)
        honest, wrong = score.count("right"), score.count("wrong")
        found = JudgeMeasurement(
            honest[1], honest[0], wrong[1], wrong[0], score.not_checked, name_prompt(), time.time()
        )
        print(describe_score(score, found, verbose=verbose))
        if score.not_checked == honest[1] + wrong[1]:
            consoles.note("The model decided nothing, so nothing is stored.", "yellow")
            return 1
        capabilities_of(model).judging = found
        objection = find_objection(model)
        print(f"evidence.judge: auto uses this model{f' not: {objection}' if objection else ''}.")
        async with open_state(settings) as shared:
            cache = await asyncio.to_thread(CapabilityCache, shared.endpoints)
            await cache.store_judging(model.endpoint.url, model.endpoint.model, found)
    return 0


async def measure_set(model: Any, folder: Path, score: JudgeScore) -> None:
    """Put the claims of a set to `model`, and add what it says to `score`. Raises `WrongUsage` for no set."""
    from maniple.agents.claim_judge import JudgeCalls
    from maniple.claims.report_check import ReportCheck

    texts, lines = await asyncio.to_thread(read_set, folder)
    check = await ReportCheck.of(await _record(texts), researched=True)
    claims = list["PendingClaim"]()
    by_line = list[list["PendingClaim"]]()
    has_bad_citation = list[bool]()
    for line in lines:
        check.start_report()
        own = [one for one in await check.list_claims(f"{line.report}\n") if one.rule.kind != "exempt"]
        found = await check.findings(f"{line.report}\n")
        has_bad_citation.append(any(one.citation.kind != "claim" for one in found))
        by_line.append(own)
        claims += own
    rounds = await check.open_judging(claims)
    await JudgeCalls(model, rounds).run()
    score.claims += len(rounds.cases)
    score.calls += rounds.calls
    outcomes = _find_outcomes(rounds)
    for line, own, is_bad in zip(lines, by_line, has_bad_citation, strict=True):
        _add(score, line, [_outcome_of(one, outcomes) for one in own], is_marked_anyway=is_bad)


def _find_outcomes(rounds: "JudgeRounds") -> dict[int, ClaimOutcome]:
    """Return what became of the claims that were asked about, by the identity of each."""
    from maniple.evidence.reasons import join_sentences

    settled = {id(pending): verdict for pending, verdict in rounds.verdicts()}
    return {
        id(case.pending): ClaimOutcome(
            case.pending.claim.text,
            case.verdict.kind if case.verdict else "not checked",
            case.why if case.verdict else (join_sentences(case.refusal) or "it gave no answer"),
            settled[id(case.pending)],
        )
        for case in rounds.cases
    }


def _outcome_of(pending: "PendingClaim", outcomes: dict[int, ClaimOutcome]) -> ClaimOutcome:
    unasked = ClaimOutcome(pending.claim.text, "not checked", "no passage was found for it", pending.rule)
    return outcomes.get(id(pending), unasked)


async def _record(texts: Sequence[str]) -> "MemoryEvidence":
    from maniple.evidence import MemoryEvidence

    record = MemoryEvidence()
    for number, text in enumerate(texts, start=1):
        title = text.lstrip("# \n").partition("\n")[0]
        await record.add(f"https://{number}.invalid/", title, "page", text)
    return record


def _add(
    score: JudgeScore, line: LabelledClaim, found: Sequence[ClaimOutcome], *, is_marked_anyway: bool
) -> None:
    """Count a line; `is_marked_anyway` says that one of its citations or quotations is marked in a report."""
    key = line.label, line.kind
    is_marked = any(one.judged in MARKED for one in found)
    is_marked_in_report = is_marked_anyway or any(one.final.is_marked for one in found)
    score.totals[key] += 1
    score.marked[key] += is_marked
    score.with_rules[line.label] += is_marked_in_report
    score.not_checked += all(one.judged == "not checked" for one in found)
    for one in found:
        score.verdicts[line.label, one.judged] += 1
    wanted = line.label == "wrong"
    who = [
        name
        for name, given in (("judge", is_marked), ("rules and judge", is_marked_in_report))
        if given != wanted
    ]
    if who:
        score.mistakes.append(f"{line.label} {line.kind}, mistake of {' and of '.join(who)}: {line.report}")
        score.mistakes += [f"    {_describe_outcome(one)}" for one in found]
    for one in found:
        if one.judged == "not checked":
            score.mistakes.append(f"{line.label} {line.kind}, not checked: {one.text}: {one.why}")


def _describe_outcome(one: ClaimOutcome) -> str:
    reason = f" ({one.final.reason})" if one.final.reason else ""
    return f"{one.text} | judge: {one.judged}: {one.why} | report: {one.final.kind}{reason}"


def read_set(folder: Path) -> tuple[list[str], list[LabelledClaim]]:
    """Return the sources of a set by number, and its claims; blocks. Raises `WrongUsage` for no set."""
    try:
        paths = {int(path.stem): path for path in (folder / "sources").glob("*.md")}
        texts = [paths[number].read_text(encoding="utf-8") for number in range(1, len(paths) + 1)]
        rows = (folder / "claims.jsonl").read_text(encoding="utf-8").splitlines()
        lines = [_read_line(json_module.loads(row)) for row in rows if row.strip()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise WrongUsage(f"{folder} is no labelled set ({reason}). See: maniple eval judge --help") from error
    if not texts or not lines:
        raise WrongUsage(f"{folder} has no sources or no claims. See: maniple eval judge --help")
    return texts, lines


def _read_line(row: dict[str, Any]) -> LabelledClaim:
    if row["label"] not in ("right", "wrong"):
        raise ValueError(f"the label {row['label']!r} is neither right nor wrong")
    return LabelledClaim(str(row["report"]), row["label"], str(row.get("kind", "")), str(row.get("why", "")))


def describe_score(score: JudgeScore, found: "JudgeMeasurement", *, verbose: bool = False) -> str:
    """Return the rates with their intervals, and the verdicts by label and by kind of claim."""
    from maniple.cli.text import clean
    from maniple.llms.judge_measurements import describe_rate

    lines = [
        f"{label:5} {kind:30} marked {score.marked[label, kind]} of {total}"
        for (label, kind), total in sorted(score.totals.items())
    ]
    lines.append("verdicts of the judge on the parts of the claims; a claim has one part or several:")
    lines += [f"{label:5} {kind:30} {count}" for (label, kind), count in sorted(score.verdicts.items())]
    names: tuple[tuple[Label, str], ...] = (("right", "honest"), ("wrong", "wrong"))
    for label, name in names:
        hits, total = score.count(label)
        lines.append(f"{name} claims marked by the judge: {describe_rate(hits, total)}")
        lines.append(
            f"{name} claims marked by rules and judge: {describe_rate(score.with_rules[label], total)}"
        )
    parts = sum(count for (_, kind), count in score.verdicts.items() if kind == "not checked")
    lines.append(f"claims of which no part was checked: {found.not_checked}; parts not checked: {parts}")
    lines.append(f"calls: {score.calls} for {score.claims} parts")
    return clean("\n".join([*lines, *(score.mistakes if verbose else [])]))
