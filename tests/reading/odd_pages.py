"""More pages in the manner of real sites: those whose markup hides, splits or scatters what they say."""

import random
from collections.abc import Callable

from tests.reading.pages import Page, prose
from tests.reading.site_pages import RELATED, SHARE, comments, paragraphs, site, texts


def list_as_the_article(dice: random.Random) -> Page:
    text = texts(dice, 10, 3)
    items = "".join(f"<li><h3>Reason {n}</h3><p>{one}</p></li>" for n, one in enumerate(text))
    body = f'<div class="listicle"><h1>The longest arch</h1><ol>{items}</ol></div>'
    return site("list as the article", body, [f"Reason {n} {one}" for n, one in enumerate(text)])


def list_of_links_as_the_article(dice: random.Random) -> Page:
    text = texts(dice, 2)
    links = [f'<a href="https://other.test/{n}">{prose(dice, 1)}</a> {prose(dice, 1)}' for n in range(8)]
    body = f"""<article class="post"><div class="post-content">{paragraphs(text)}
<ul>{paragraphs(links, "li")}</ul></div></article>"""
    said = [link.replace("</a>", "").partition(">")[2] for link in links]
    return site("list of links", body, [*text, *said])


def hidden_in_many_ways(dice: random.Random) -> Page:
    text = texts(dice, 6)
    hidden = "".join(
        f"<div {how}>{paragraphs(texts(dice, 1))}</div>"
        for how in ("style='display:none'", "hidden", "aria-hidden=true", "style='visibility: hidden'")
    )
    body = f'<div class="entry">{paragraphs(text[:3])}{hidden}{paragraphs(text[3:])}</div>'
    return site("hidden in many ways", body, text)


def lazy_pictures(dice: random.Random) -> Page:
    text = texts(dice, 6)
    late = '<img class=lazy src="data:image/gif;base64,R0" data-src=/{0}.jpg>'
    lazy = late + "<noscript><img src=/{0}.jpg></noscript>"
    body = "".join(f"<p>{one}</p><p>{lazy.format(n)}</p>" for n, one in enumerate(text))
    return site("lazy pictures", f'<div class="article-text">{body}</div>', text)


def short_note(dice: random.Random) -> Page:
    text = texts(dice, 1, 3)
    body = f"<article><h1>The longest arch</h1><p>{text[0]}</p></article><aside><ul>{RELATED}</ul></aside>"
    return site("short note", body, text)


def pull_quotes(dice: random.Random) -> Page:
    text = texts(dice, 8)
    aside = '<aside class="pullquote"><p>It is the longest arch that anybody has seen.</p></aside>'
    quote = "<blockquote><p>Nobody believed in it, and now everybody walks on it.</p></blockquote>"
    parts = [paragraphs(text[:3]), aside, paragraphs(text[3:5]), quote, paragraphs(text[5:])]
    body = f"<article>{''.join(parts)}</article>"
    kept = [*text[:5], "Nobody believed in it, and now everybody walks on it.", *text[5:]]
    return site("pull quotes", body, kept)


def headings_in_a_header(dice: random.Random) -> Page:
    text = texts(dice, 7)
    standfirst = "It took seven years, three storms and a council that changed its mind."
    body = f"""<article><header class="article-header"><h1>The longest arch</h1>
<p class="standfirst">{standfirst}</p>
<div class="byline">By <a rel=author href=/ann>Ann Author</a></div></header>
<div class="article-body">{paragraphs(text)}</div></article>"""
    return site("headings in a header", body, [standfirst, *text])


def bylines_and_dates(dice: random.Random) -> Page:
    text = texts(dice, 7)
    body = f"""<div class="story"><div class="story-body"><p class="byline">By Ann Author, our writer</p>
<p class="dateline"><span itemprop=datePublished>9 May 2026</span></p>{paragraphs(text)}
<div class="author-bio"><p>Ann Author writes about bridges.</p></div></div></div>"""
    return site("bylines and dates", body, [*text, "Ann Author writes about bridges."])


def sections_of_one_paragraph(dice: random.Random) -> Page:
    text = texts(dice, 8)
    parts = "".join(f'<div class="c-block"><div class="c-text"><p>{one}</p></div></div>' for one in text)
    rail = f'<div class="l-rail"><ul>{RELATED}</ul></div>'
    body = f'<div class="l-main"><div class="l-article">{parts}</div>{rail}</div>'
    return site("sections of one paragraph", body, text)


def advertisements_between(dice: random.Random) -> Page:
    text = texts(dice, 8)
    ad = '<div class="ad-break"><p>Advertisement</p><a href=/ad><img src=/ad.gif></a></div>'
    parts = "".join(f"<p>{one}</p>{ad if n % 2 else ''}" for n, one in enumerate(text))
    return site("advertisements between", f'<div class="post-content">{parts}</div>{SHARE}', text)


def comments_longer_than_the_story(dice: random.Random) -> Page:
    text = texts(dice, 4)
    body = f"""<div class="post"><div class="entry-content">{paragraphs(text)}</div></div>
<div id="disqus_thread" class="comments-area"><ol>{comments(dice, 40)}</ol></div>"""
    return site("comments longer than the story", body, text)


def table_of_data(dice: random.Random) -> Page:
    text = texts(dice, 4)
    rows = [[f"Bridge {n}", str(1900 + n), f"{n * 100} m"] for n in range(12)]
    cells = "".join("<tr>" + paragraphs(row, "td") + "</tr>" for row in rows)
    head = "<thead><tr><th>Name<th>Opened<th>Length</tr></thead>"
    table = f"<table class=data>{head}<tbody>{cells}</tbody></table>"
    body = f'<div class="body-copy">{paragraphs(text[:2])}{table}{paragraphs(text[2:])}</div>'
    said = ["Name Opened Length", *(" ".join(row) for row in rows)]
    return site("table of data", body, [*text[:2], *said, *text[2:]])


def chinese_portal(dice: random.Random) -> Page:
    letters = "桥梁建设工程师城市河流石头钢铁多年以来第一座新的大桥开通交通风力塔缆索"
    text = ["，".join("".join(dice.choices(letters, k=22)) for _ in range(4)) + "。" for _ in range(8)]
    menu = "".join(f"<a href=/{n}>{''.join(dice.choices(letters, k=4))}</a>|" for n in range(40))
    body = f"""<div class="channel">{menu}</div><div class="content-article" id="Cnt-Main-Article-QQ">
{paragraphs(text, 'p style="TEXT-INDENT: 2em"')}</div><div class="rank"><ul>{RELATED}</ul></div>"""
    return site("Chinese portal", body, text)


def poem_and_code(dice: random.Random) -> Page:
    text = texts(dice, 3)
    lines = ["O bridge, O arch,", "you stand in March,", "and in the wind of May,", "you also stay."]
    body = f"""<article class="hentry">{paragraphs(text)}<pre class="poem">{chr(10).join(lines)}</pre>
<dl><dt>Arch</dt><dd>{prose(random.Random(1), 1)}</dd></dl></article>"""
    return site("poem and code", body, [*text, *lines, "Arch", prose(random.Random(1), 1)])


ODD: tuple[Callable[[random.Random], Page], ...] = (
    list_as_the_article,
    list_of_links_as_the_article,
    hidden_in_many_ways,
    lazy_pictures,
    short_note,
    pull_quotes,
    headings_in_a_header,
    bylines_and_dates,
    sections_of_one_paragraph,
    advertisements_between,
    comments_longer_than_the_story,
    table_of_data,
    chinese_portal,
    poem_and_code,
)
