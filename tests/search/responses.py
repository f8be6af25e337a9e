"""What the engines' APIs answer, in the shapes that their documentation shows."""

import json
from typing import Any

from tests.crawler.web import Reply


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    names = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return Reply(json.dumps(value), "application/json", status, names)


# https://api-dashboard.search.brave.com/api-reference/web/search/get
BRAVE: dict[str, Any] = {
    "type": "search",
    "query": {"original": "bridges", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {"title": "Arch", "url": "https://a.test/", "description": "An arch.", "age": "May 2, 2025"},
            {"title": "Beam", "url": "https://b.test/", "description": "A beam."},
            {"title": "No page", "url": "brave://settings", "description": "x"},
        ],
    },
}

# https://docs.searxng.org/dev/search_api.html
SEARXNG: dict[str, Any] = {
    "query": "bridges",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.test/",
            "title": "Arch",
            "content": "An arch.",
            "engine": "duckduckgo",
            "engines": ["duckduckgo", "brave"],
            "score": 4.0,
            "category": "general",
        },
        {"url": "https://b.test/", "title": "Beam", "content": "A beam.", "score": 0.5},
    ],
    "answers": [],
    "suggestions": [],
    "unresponsive_engines": [["google", "Suspended: CAPTCHA"]],
}

# https://www.mediawiki.org/wiki/API:Query with generator=search; pages come by number, not by rank.
WIKIPEDIA: dict[str, Any] = {
    "batchcomplete": True,
    "query": {
        "pages": [
            {
                "pageid": 7,
                "title": "Beam bridge",
                "index": 2,
                "extract": "A beam bridge is simple.",
                "canonicalurl": "https://en.wikipedia.org/wiki/Beam_bridge",
            },
            {
                "pageid": 9,
                "title": "Arch bridge",
                "index": 1,
                "extract": "An arch bridge is curved.",
                "canonicalurl": "https://en.wikipedia.org/wiki/Arch_bridge",
            },
        ]
    },
}

# https://info.arxiv.org/help/api/user-manual.html
_ATOM = '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'
_PAPER = """
<entry>
  <id>http://arxiv.org/abs/1706.03762v7</id>
  <published>2017-06-12T17:57:34Z</published>
  <title>Attention Is All
  You Need</title>
  <summary>  The dominant models are
recurrent. </summary>
  <author><name>Ashish Vaswani</name></author>
  <author><name>Noam Shazeer</name></author>
  <link href="http://arxiv.org/pdf/1706.03762v7" rel="related" type="application/pdf"/>
</entry>"""
_WRONG = """
<entry><id>https://arxiv.org/api/errors#incorrect_id_format</id><title>Error</title>
<summary>incorrect id format for x</summary></entry>"""


def atom(entries: str) -> Reply:
    return Reply(_ATOM.format(entries=entries), "application/atom+xml; charset=UTF-8")


ARXIV = atom(_PAPER)
ARXIV_NOTHING = atom("")
ARXIV_WRONG = atom(_WRONG)

# What html.duckduckgo.com shows to browsers without JavaScript, as ddgs 9.16 reads it.
DUCKDUCKGO = """<html><body><div class="links_main links_deep result__body">
<h2 class="result__title"><a href="https://a.test/">Arch</a></h2>
<a class="result__snippet" href="https://a.test/">An <b>arch</b>.</a></div>
<div class="links_main links_deep result__body"><h2 class="result__title"><a href="https://b.test/">Beam</a></h2>
<a class="result__snippet" href="https://b.test/">A beam.</a></div></body></html>"""
