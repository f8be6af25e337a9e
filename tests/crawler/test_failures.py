"""What a model reads about a response that is no page."""

import pytest

from maniple.crawler.http_client import status_error


@pytest.mark.parametrize(
    ("seconds", "advice"),
    [
        (90.0, "asked again in 90 s;"),
        (86_400.0, "in 86,400 s;"),
        (2_300_880_828.0, "not to be asked again today;"),
    ],
)
def test_a_retry_after_of_more_than_a_day_advises_another_source(seconds: float, advice: str) -> None:
    said = str(status_error("https://a.test/", 429, seconds))
    assert advice in said
    assert said.endswith("use another source until then." if seconds <= 86_400 else "use another source.")
