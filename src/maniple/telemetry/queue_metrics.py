"""The metrics of the queue of runs, which several processes share: each of them reports the whole queue."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class QueueMetrics:
    """What stands in the database, and how soon its bells are heard here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._waiting = Gauge("maniple_queue_waiting", "Jobs that wait for a worker.", registry=registry)
        self._oldest = Gauge(
            "maniple_queue_oldest_seconds", "How long the oldest of them has waited.", registry=registry
        )
        self._lag = Gauge(
            "maniple_queue_bell_seconds", "Time from a bell to this process.", registry=registry
        )
        self._take_overs = _SharedCounter(
            Counter("maniple_queue_take_overs", "Runs whose process has died.", registry=registry)
        )
        self._fenced = _SharedCounter(
            Counter("maniple_queue_fenced_writes", "Refused writes to lost runs.", registry=registry)
        )

    def observe(self, waiting: int, oldest_seconds: float, take_overs: int, fenced_writes: int) -> None:
        """Report what was read from the database; the last two are counted since it was made."""
        self._waiting.set(waiting)
        self._oldest.set(oldest_seconds)
        self._take_overs.rise_to(take_overs)
        self._fenced.rise_to(fenced_writes)

    def observe_bell(self, seconds: float) -> None:
        """Report how long a bell took from its sender to this process."""
        self._lag.set(seconds)


class _SharedCounter:
    """A counter whose count stands elsewhere. It never falls, also not when that does, as after a restore."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._count = 0

    def rise_to(self, count: int) -> None:
        self._counter.inc(max(count - self._count, 0))
        self._count = count
