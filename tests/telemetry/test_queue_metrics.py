"""The metrics of a queue that several processes share."""

from maniple.telemetry.metrics import Metrics
from tests.telemetry.test_metrics import figures


def test_a_process_reports_the_whole_queue_and_its_counters_never_fall() -> None:
    metrics = Metrics()
    assert not [name for name in figures(metrics) if name.startswith("queue")]
    queue = metrics.add_queue()
    queue.observe(7, 3.5, take_overs=4, fenced_writes=2)
    queue.observe_bell(0.25)
    queue.observe(1, 0.5, take_overs=6, fenced_writes=2)
    now = figures(metrics)
    assert (now["queue_waiting"], now["queue_oldest_seconds"], now["queue_bell_seconds"]) == (1, 0.5, 0.25)
    assert (now["queue_take_overs_total"], now["queue_fenced_writes_total"]) == (6, 2)
    queue.observe(0, 0.0, take_overs=1, fenced_writes=0)  # an older database was restored
    queue.observe(0, 0.0, take_overs=2, fenced_writes=0)
    assert figures(metrics)["queue_take_overs_total"] == 7
