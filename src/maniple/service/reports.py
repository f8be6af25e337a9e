"""The answer of a run, as every protocol gives it."""

from maniple.errors import ManipleError
from maniple.report_files import read_answer
from maniple.runs import NotFound
from maniple.service.views import ArtifactView, ReportView, UsageView
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
    if run.status in ("queued", "running", "interrupted"):
        raise RunNotFinished(f"The run has no report yet; it is {run.status}.")
    markdown = await read_answer(store, run)
    if markdown is None:
        raise ReportMissing(f"The run has no report: it ended {run.status}. Its events hold what was done.")
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
