"""When a model was measured to judge claims well enough."""

import json
import time
from pathlib import Path

import pytest

from maniple.llms.capabilities import JUDGE_SECONDS, CapabilityCache
from maniple.llms.judge_measurements import JudgeMeasurement, describe_rate, find_interval
from maniple.shared_texts import TextFolder

pytestmark = pytest.mark.anyio


def measured(at: float | None = None) -> JudgeMeasurement:
    return JudgeMeasurement(300, 9, 100, 85, 4, "p", time.time() if at is None else at)


def test_the_interval_is_wilsons() -> None:
    # Newcombe 1998, table 1: 81 of 263, 15 of 148, 0 of 20.
    assert find_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert find_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert find_interval(0, 20) == pytest.approx((0, 0.1611), abs=1e-4)
    assert find_interval(0, 0) == (0, 1)
    assert describe_rate(0, 20) == "0 of 20 = 0.0 % (0.0 to 16.1)"


def test_the_limits_themselves_are_enough() -> None:
    assert measured().find_objection("p") == ""
    assert measured().find_objection("q")


@pytest.mark.parametrize("stored", [None, [], {}, {"honest": "300"}, {**measured().to_json(), "caught": -1}])
def test_what_is_no_measurement_is_none(stored: object) -> None:
    assert JudgeMeasurement.of(stored) is None


async def test_it_is_stored_beside_the_features_and_kept_for_longer(tmp_path: Path) -> None:
    file = tmp_path / "capabilities.json"
    cache = CapabilityCache(TextFolder(file.parent))
    await cache.store("u", "m", {"tools": False})
    await cache.store_judging("u", "m", measured())
    again = CapabilityCache(TextFolder(file.parent))
    assert again.of("u", "m") == {"tools": False}
    assert again.judging_of("u", "m") == measured(again.judging_of("u", "m").at)  # type: ignore[union-attr]
    entries = json.loads(file.read_text(encoding="utf-8"))
    entries["u m"]["at"] -= JUDGE_SECONDS / 2
    file.write_text(json.dumps(entries), encoding="utf-8")
    later = CapabilityCache(TextFolder(file.parent))
    assert later.of("u", "m") == {}
    assert later.judging_of("u", "m") is not None


async def test_an_old_measurement_no_longer_counts(tmp_path: Path) -> None:
    texts = TextFolder(tmp_path)
    await CapabilityCache(texts).store_judging("u", "m", measured(time.time() - JUDGE_SECONDS - 60))
    assert CapabilityCache(texts).judging_of("u", "m") is None


async def test_what_another_process_has_stored_stays(tmp_path: Path) -> None:
    file = tmp_path / "capabilities.json"
    server, evaluation = CapabilityCache(TextFolder(file.parent)), CapabilityCache(TextFolder(file.parent))
    await evaluation.store_judging("u", "m", measured())
    await server.store("u", "m", {"tools": False})
    assert CapabilityCache(TextFolder(file.parent)).judging_of("u", "m") is not None
    assert CapabilityCache(TextFolder(file.parent)).of("u", "m") == {"tools": False}
