"""All pages that reading is measured on."""

import random

from tests.reading.odd_pages import ODD
from tests.reading.pages import Page, pages
from tests.reading.site_pages import SITES


def corpus() -> list[Page]:
    """One page of each shape and of each kind of site; the same at each call."""
    return [*pages(), *(make(random.Random(make.__name__)) for make in (*SITES, *ODD))]
