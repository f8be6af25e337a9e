"""The figures of the queue, measured with few runs."""

import pytest

from bench.queue import LIMITS, Sizes, format_table, main, measure
from tests.postgres import require_programs

TINY = Sizes(starts=2, held=4, cancels=2, kills=1, watched=3, loads=(3,), batch=4, parallel=2)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(240)
async def test_all_parts_are_measured():
    require_programs()
    figures = await measure(TINY)
    assert LIMITS.keys() - figures.keys() == {"postgres_64_cpu_ms"}
    assert figures["held_runs"] == TINY.held
    assert figures["batch_accepted"] == TINY.batch
    assert figures["live_gaps"] == 0
    assert figures["live_events"] > TINY.watched
    assert figures["take_over_p50_ms"] > 1_000, "a run of a living worker was taken over"
    assert all(figures[f"{name}_3_cpu_ms"] > 0 for name in ("postgres", "workers", "process"))
    assert figures["checkpoints_3_bytes"] > 0
    assert figures["batch_of_ideal"] >= 1


def test_a_missed_bar_is_shown():
    limit = LIMITS["cancel_p95_ms"]
    assert "MISSED" not in format_table("Cancels", {"cancel_p95_ms": limit, "cancel_p50_ms": 1e9})
    assert "MISSED" in format_table("Cancels", {"cancel_p95_ms": limit + 1})


def test_the_short_form_is_an_option(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "--quick" in capsys.readouterr().out
