"""When a schedule is due, also in the nights in which the clock is changed."""

import itertools
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from maniple.schedules import InvalidSchedule, ScheduleTiming, list_next_times, next_time, parse_moment
from maniple.schedules.schedule_times import latest_time

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def test_a_weekday_is_due_in_the_zone_of_the_schedule():
    found = list_next_times("0 8 * * 1", BERLIN, at("2026-11-28T12:00"), 2)
    assert found == [at("2026-11-30T08:00"), at("2026-12-07T08:00")]
    assert next_time("0 8 * * mon", "Asia/Tokyo", at("2026-11-28T12:00")) == at(
        "2026-11-30T08:00", "Asia/Tokyo"
    )


def test_a_time_in_the_gap_of_summer_time_comes_at_its_end_once():
    # At 02:00 on 29 March 2026 the clocks of Berlin go to 03:00.
    found = list_next_times("30 2 * * *", BERLIN, at("2026-03-28T12:00"), 2)
    assert found == [at("2026-03-29T03:00"), at("2026-03-30T02:30")]
    both = list_next_times("10,50 2 * * *", BERLIN, at("2026-03-28T12:00"), 2)
    assert both == [at("2026-03-29T03:00"), at("2026-03-30T02:10")]


def test_a_time_that_comes_twice_is_due_the_first_time_only():
    # At 03:00 on 25 October 2026 the clocks of Berlin go back to 02:00.
    found = list_next_times("30 2 * * *", BERLIN, at("2026-10-24T12:00"), 2)
    assert found == [at("2026-10-25T02:30", fold=0), at("2026-10-26T02:30")]


def test_every_hour_follows_real_time_through_both_changes():
    for begin in ("2026-03-29T00:30", "2026-10-25T00:30"):
        found = list_next_times("0 * * * *", BERLIN, at(begin), 5)
        assert {later - earlier for earlier, later in itertools.pairwise(found)} == {3600.0}


@pytest.mark.parametrize("cron", ["0 * * * *", "*/20 * * * *", "30 2 * * *", "0 8 * * 1"])
@pytest.mark.parametrize("begin", ["2026-03-28T23:10", "2026-10-24T23:10", "2026-07-01T08:00"])
def test_the_latest_time_is_the_one_that_was_next(cron, begin):
    times = list_next_times(cron, BERLIN, at(begin), 12)
    assert [latest_time(cron, BERLIN, one) for one in times] == times
    assert [latest_time(cron, BERLIN, one + 30) for one in times] == times


def test_a_moment_has_the_zone_of_the_schedule_or_its_own_offset():
    assert parse_moment("2030-01-31T08:00", BERLIN) == at("2030-01-31T08:00")
    assert parse_moment("2030-01-31T08:00Z", BERLIN) == at("2030-01-31T08:00", "UTC")


@pytest.mark.parametrize(
    ("timing", "word"),
    [
        (ScheduleTiming("61 8 * * *"), "minute"),
        (ScheduleTiming("0 0 8 * * *"), "five fields"),
        (ScheduleTiming("0 8 * * 1", zone="Mars/Base"), "Mars/Base"),
        (ScheduleTiming("0 8 * * 1", zone="../../etc/passwd"), "time zone"),
        (ScheduleTiming("0 0 30 2 *"), "30 2"),
        (ScheduleTiming("0 8 * * 1", at="2030-01-01"), "either"),
        (ScheduleTiming(), "either"),
        (ScheduleTiming(at="2020-01-01T00:00"), "past"),
        (ScheduleTiming(at="soon"), "soon"),
        (ScheduleTiming(at="2027-03-28T02:30", zone=BERLIN), "jumps"),
    ],
)
def test_what_is_never_due_is_refused_with_the_reason(timing, word):
    with pytest.raises(InvalidSchedule, match=word):
        timing.first_time(at("2026-11-28T12:00"))
