"""The answer of a run and the check of its claims, as every protocol gives them."""

from collections.abc import Collection

from maniple.errors import ManipleError
from maniple.report_files import read_answer, read_claims
from maniple.runs import NotFound
from maniple.service.views import ArtifactView, ClaimCounts, ClaimList, ReportView, UsageView, Verdict
from maniple.store import RunRecord, Store


class RunNotFinished(ManipleError):
    """The run has not ended yet."""

    code = "not_finished"
    retryable = True


class ReportMissing(ManipleError):
    """The run ended without an answer."""

    code = "no_report"


async def read_report_view(store: Store, run: RunRecord) -> ReportView:
    """Return the answer of a run; raises `RunNotFinished` or `ReportMissing`."""
    markdown = await read_markdown(store, run)
    thread = await store.threads.get(run.thread_id, run.owner)
    if thread is None:
        raise NotFound("There is no such run.")
    return ReportView(
        run_id=run.run_id,
        thread_id=run.thread_name,
        status=run.status,
        title=thread.title,
        markdown=markdown,
        ended_at=run.ended_at,
        usage=UsageView.model_validate(run.usage),
        artifacts=[ArtifactView.of(artifact) for artifact in await store.artifacts.list_by_run(run.run_id)],
    )


async def read_claim_list(store: Store, run: RunRecord, verdicts: Collection[Verdict] = ()) -> ClaimList:
    """Return the claims of a run's answer, of the given verdicts if there are any.

    Raises:
        RunNotFinished: the run has not ended.
        ReportMissing: it ended without an answer.
    """
    await read_markdown(store, run)
    checked = await read_claims(store, run)
    if checked is None:
        return ClaimList(run_id=run.run_id)
    return ClaimList(
        run_id=run.run_id,
        score=checked.score,
        counts=ClaimCounts(**checked.model_dump(include={*ClaimCounts.model_fields})),
        claims=[one for one in checked.claims if not verdicts or one.verdict in verdicts],
        unlisted=checked.unlisted,
        marked_citations=checked.marked_citations,
        unsearched=checked.unsearched,
    )


async def read_markdown(store: Store, run: RunRecord) -> str:
    """Return the answer of a run as Markdown; raises `RunNotFinished` or `ReportMissing`."""
    if run.status in ("queued", "running", "interrupted"):
        raise RunNotFinished(f"The run has no report yet; it is {run.status}.")
    markdown = await read_answer(store, run)
    if markdown is None:
        raise ReportMissing(f"The run has no report: it ended {run.status}. Its events hold what was done.")
    return markdown
