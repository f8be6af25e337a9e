"""What the members of the team use of a run, while it goes on and afterwards."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maniple.agents.budget import Prices
from maniple.events import Usage, read_event
from maniple.runs.usage import Share, Shares, with_calls
from maniple.store import EventRecord, EventTable, stored

KEPT = 256
_USAGE = Usage.model_fields["type"].default


@dataclass(frozen=True, slots=True)
class _Known:
    """The shares as of an event, by its number."""

    number: int = 0
    shares: Shares = field(default_factory=dict)


class Spending:
    """Adds up the stored `usage` events of runs at these prices.

    Of the `KEPT` runs that were asked for last only what is new is read.
    """

    def __init__(self, events: EventTable, prices: Mapping[str, Prices]) -> None:
        self._events = events
        self._prices = prices
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def of_run(self, run_id: str) -> Sequence[Share]:
        """Return what each member has used so far, in the order of their first model calls."""
        known = self._known.get(run_id, _Known())
        async for page in stored(self._events, run_id, known.number):
            known = self._with_page(known, page)
        self._keep(run_id, known)
        return [*known.shares.values()]

    def _with_page(self, known: _Known, page: Sequence[EventRecord]) -> _Known:
        events = (read_event(record.type, record.data) for record in page if record.type == _USAGE)
        return _Known(page[-1].number, with_calls(known.shares, events, self._prices))

    def _keep(self, run_id: str, known: _Known) -> None:
        self._known[run_id] = known
        self._known.move_to_end(run_id)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
