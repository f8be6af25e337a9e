"""What a run was asked and what it came to, read from its events."""

from dataclasses import dataclass, field

from maniple.cli.tally import Tally
from maniple.events import PlanChanged, read_event
from maniple.runs import Engine, RunRequest
from maniple.store import RunRecord


@dataclass(slots=True)
class Recollection:
    """The last exchange of a conversation. `plan` is its newest plan."""

    asked: str
    tally: Tally = field(default_factory=Tally)
    plan: PlanChanged | None = None


async def recall(engine: Engine, run: RunRecord) -> Recollection:
    """Read a run that has ended or waits."""
    recollection = Recollection(question_of(run))
    async for page in engine.events(run.run_id):
        for record in page:
            if record.type == "message" and not recollection.tally.listens:
                continue  # a run has thousands of them
            event = read_event(record.type, record.data)
            recollection.tally.count(event)
            if isinstance(event, PlanChanged):
                recollection.plan = event
    return recollection


def question_of(run: RunRecord) -> str:
    """Return what the person asked."""
    request = RunRequest.of(run)
    return request.messages[-1].text
