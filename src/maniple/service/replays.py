"""The file that plays a run, with all that the page knows about it."""

from collections.abc import Iterable

from maniple.replay import Replay, build_replay
from maniple.report_files import read_answer
from maniple.report_files.report_bodies import ReportBodies
from maniple.run_files.pictures import FigureFinder
from maniple.runs import AgentUsage
from maniple.service.views import AgentUsageView


async def build_run_replay(finder: FigureFinder, bodies: ReportBodies, usage: Iterable[AgentUsage]) -> Replay:
    """Return the file that plays the run of `finder`, with its report, if it has one, and its usage by agent.

    Raises:
        NotFound: the page has not been built in this clone.
        StoreError: the run's records cannot be read. Reading the pieces can raise it, too.
    """
    report = await read_answer(finder.store, finder.run)
    body = None if report is None else await bodies.render(finder, report)
    by_agent = [AgentUsageView.of(one).model_dump() for one in usage]
    return await build_replay(finder.store, finder.run, {"by_agent": by_agent}, finder, body)
