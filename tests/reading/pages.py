"""Pages of the shapes that the web has, made of seeded prose, each with what a person would read of it."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

_WORDS = re.findall(
    r"\w+",
    """
the of a bridge river over city stone steel engineers built across years water longest arch span
opened traffic under between new old first wind tower cable deck after storm winter council said
people cost plan
""",
)
_HAN = (
    "桥梁建设工程师城市河流石头钢铁多年以来第一座新的大桥开通交通风力塔缆索"
    "桥面冬季风暴议会居民费用计划直到仍然保留"
)
_KANA = "橋は川の上に架かり町の人々が毎日渡っています石と鋼で作られた古い塔から風の強い冬の日も見えます"


@dataclass(frozen=True, slots=True)
class Page:
    """HTML and what a person would read of it."""

    name: str
    html: str
    text: str


def pages() -> list[Page]:
    """One of each shape; the same at each call."""
    return [shape(random.Random(shape.__name__)) for shape in _SHAPES]


def prose(dice: random.Random, sentences: int = 5) -> str:
    """A paragraph."""

    def words(count: int) -> str:
        return " ".join(dice.choices(_WORDS, k=count))

    return " ".join(f"{words(dice.randint(7, 12))}, {words(7)}.".capitalize() for _ in range(sentences))


def _paragraphs(dice: random.Random, count: int) -> list[str]:
    return [prose(dice) for _ in range(count)]


def _p(paragraphs: list[str]) -> str:
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)


def _links(dice: random.Random, count: int) -> str:
    return "".join(f"<li><a href=/{n}>{' '.join(dice.choices(_WORDS, k=4))}</a></li>" for n in range(count))


def _site(dice: random.Random, body: str, title: str = "A bridge") -> str:
    """`body` between what every site has: menus, a banner for cookies, related articles, a footer."""
    script = f"<script>var menu = '{prose(dice)}';</script>"
    return f"""<!doctype html><html><head><title>{title}</title>{script}</head><body>
<div class="cookie-banner">{prose(dice, 2)} <button>Accept</button></div>
<div id="header"><a href="/">Home</a><ul class="menu">{_links(dice, 12)}</ul></div>
{body}
<div class="related-posts"><h3>Read also</h3><ul>{_links(dice, 8)}</ul></div>
<div class="footer">{prose(dice, 1)}<ul>{_links(dice, 9)}</ul></div></body></html>"""


def news(dice: random.Random) -> Page:
    text = _paragraphs(dice, 9)
    body = f"""<article><header><h1>A bridge</h1><p class="byline">By Ann Author</p></header>
<div class="share-tools"><a href=#>Share</a> <a href=#>Mail</a></div>{_p(text[:5])}
<aside class="promo"><h4>More</h4><ul>{_links(dice, 5)}</ul></aside>{_p(text[5:])}
<div class="newsletter-signup"><form><p>Get it by mail</p><input name=mail></form></div></article>"""
    return Page("news", _site(dice, body), " ".join(text))


def nested_divisions(dice: random.Random) -> Page:
    text = _paragraphs(dice, 8)
    parts = "".join(f'<div class="x{n}"><div>{part}</div></div>' for n, part in enumerate(text))
    beside = f"<div class=c3><ul>{_links(dice, 20)}</ul></div>"
    body = f"<div><div><div class=c1><div class=c2>{parts}</div></div>{beside}</div></div>"
    return Page("nested divisions", _site(dice, body), " ".join(text))


def line_breaks(dice: random.Random) -> Page:
    text = _paragraphs(dice, 8)
    broken = "<br><br>".join(text)
    body = f"<table><tr><td><ul>{_links(dice, 15)}</ul></td><td><div>{broken}</div></td></tr></table>"
    return Page("line breaks", _site(dice, body), " ".join(text))


def comments(dice: random.Random) -> Page:
    text, said = _paragraphs(dice, 6), _paragraphs(dice, 12)
    listed = "".join(f'<div class="comment"><b>User</b><p>{one}</p></div>' for one in said)
    body = f'<div class="post-content">{_p(text)}</div><div id="comments">{listed}</div>'
    return Page("comments", _site(dice, body), " ".join(text))


def documentation(dice: random.Random) -> Page:
    text = _paragraphs(dice, 6)
    code = "def span(metres):\n    return metres * 2"
    part = "".join(
        f"<h2>Step {n}</h2><p>{one}</p><pre><code>{code}</code></pre>" for n, one in enumerate(text)
    )
    body = f"""<nav>{_links(dice, 40)}</nav><div class=sidebar><ul>{_links(dice, 60)}</ul></div>
<div class=document><div class=body>{part}</div></div>"""
    said = " ".join(f"Step {n} {one} {code}" for n, one in enumerate(text))
    return Page("documentation", _site(dice, body), said)


def encyclopedia(dice: random.Random) -> Page:
    text = _paragraphs(dice, 7)
    facts = {key: dice.randint(1, 9999) for key in ("Length", "Height", "Opened")}
    rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in facts.items())
    linked = [one.replace("bridge", '<a href="/wiki/bridge">bridge</a>') for one in text]
    body = f"""<div id="mw-navigation"><ul>{_links(dice, 25)}</ul></div>
<div id="content" class="mw-body"><div class="mw-parser-output">
<table class="infobox"><caption>Facts</caption>{rows}</table>{_p(linked)}</div></div>"""
    table = " ".join(f"{key} {value}" for key, value in facts.items())
    return Page("encyclopedia", _site(dice, body), f"Facts {table} {' '.join(text)}")


def tables(dice: random.Random) -> Page:
    text = _paragraphs(dice, 4)
    cells = [[str(dice.randint(1, 999)) for _ in range(5)] for _ in range(12)]
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    head = "<thead><tr><th>a<th>b<th>c<th>d<th>e</tr></thead>"
    body = f"<main>{_p(text[:2])}<table>{head}{rows}</table>{_p(text[2:])}</main>"
    said = " ".join([*text, "a b c d e", *(" ".join(row) for row in cells)])
    return Page("tables", _site(dice, body), said)


def thread(dice: random.Random) -> Page:
    text = _paragraphs(dice, 10)
    posts = "".join(
        f'<div class="post"><div class="user-info"><a href=/u>user{n}</a></div>'
        f'<div class="post-text"><p>{one}</p></div></div>'
        for n, one in enumerate(text)
    )
    return Page("thread", _site(dice, f'<div id="thread">{posts}</div>'), " ".join(text))


def product(dice: random.Random) -> Page:
    text = _paragraphs(dice, 3)
    listed = [prose(dice, 1) for _ in range(6)]
    body = f"""<div class="product"><div class="gallery"><img src=/1.jpg><img src=/2.jpg></div>
<div class="description">{_p(text)}<ul>{"".join(f"<li>{one}</li>" for one in listed)}</ul></div>
<form><select><option>1</option></select><button>Buy</button></form></div>
<div class="recommendations"><ul>{_links(dice, 12)}</ul></div>"""
    return Page("product", _site(dice, body), " ".join([*text, *listed]))


def hidden_text(dice: random.Random) -> Page:
    text, hidden = _paragraphs(dice, 6), _paragraphs(dice, 3)
    body = f"""<div class="entry-content">{_p(text[:3])}<div style="display: none">{_p(hidden)}</div>
<div hidden>{prose(dice)}</div>{_p(text[3:])}<div aria-hidden="true">{prose(dice)}</div></div>"""
    return Page("hidden text", _site(dice, body), " ".join(text))


def paywall(dice: random.Random) -> Page:
    text = _paragraphs(dice, 5)
    behind = "".join(f'<p class="paywall">{one}</p>' for one in text)
    body = f"""<section class="article-body">{behind}</section>
<div class="subscribe-banner"><p>{prose(dice, 1)}</p><a href=/pay>Subscribe now</a></div>"""
    return Page("paywall", _site(dice, body), " ".join(text))


def chinese(dice: random.Random) -> Page:
    return _cjk("chinese", dice, _HAN, "，", "。")


def japanese(dice: random.Random) -> Page:
    return _cjk("japanese", dice, _KANA, "、", "。")


def _cjk(name: str, dice: random.Random, letters: str, comma: str, stop: str) -> Page:
    def line(length: int) -> str:
        return "".join(dice.choices(letters, k=length))

    text = [f"{line(25)}{comma}{line(30)}{stop}{line(20)}{stop}" for _ in range(9)]
    menu = "".join(f"<li><a href=/{n}>{line(4)}</a></li>" for n in range(40))
    beside = f"<div class=hot><ul>{menu}</ul></div>"
    body = f"<div class=nav><ul>{menu}</ul></div><div id=artibody>{_p(text)}</div>{beside}"
    return Page(name, _site(dice, body, escape(line(8))), " ".join(text))


_SHAPES: tuple[Callable[[random.Random], Page], ...] = (
    *(news, nested_divisions, line_breaks, comments, documentation, encyclopedia, tables, thread, product),
    *(hidden_text, paywall, chinese, japanese),
)
