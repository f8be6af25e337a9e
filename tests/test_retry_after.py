"""The waiting time in each form of a `Retry-After` header."""

import time
from email.utils import formatdate

import pytest

from maniple.retry_after import retry_after_seconds

THEN = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("9" * 4_000, 999_999_999.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("7 s", None),
        ("٧", None),
        ("1e999", None),
        ("Wed, 99 Oct 99999999999999999 07:30:00 GMT", None),
    ],
)
def test_seconds_are_read_and_other_values_are_ignored(said: str, seconds: float | None) -> None:
    assert retry_after_seconds({"retry-after": said}) == seconds


def test_without_the_header_there_is_no_time_to_wait() -> None:
    assert retry_after_seconds({"date": THEN}) is None


@pytest.mark.parametrize(("until", "seconds"), [("07:30:00", 120.0), ("07:20:00", 0.0)])
def test_a_date_counts_from_the_clock_of_who_wrote_it(until: str, seconds: float) -> None:
    headers = {"retry-after": THEN.replace("07:28:00", until), "date": THEN}
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("date", [{}, {"date": "today"}])
def test_a_date_of_one_without_a_clock_counts_from_ours(date: dict[str, str]) -> None:
    until = formatdate(time.time() + 600, usegmt=True)
    assert retry_after_seconds({"retry-after": until, **date}) == pytest.approx(600, abs=60)
