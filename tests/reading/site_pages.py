"""Pages in the manner of real sites, each with what Mozilla's Readability keeps of such a page.

That is: figures with their captions, headings and tables stay; a title that the page repeats, a byline,
buttons to share, related links and comments go.
"""

import random
from collections.abc import Callable

from tests.reading.pages import Page, prose

RELATED = "".join(f"<li><a href=/r{n}>Another story about bridge number {n}</a></li>" for n in range(9))
SHARE = '<div class="social-share"><a href=#f>Facebook</a> <a href=#t>Twitter</a> <a href=#m>Mail</a></div>'


def paragraphs(texts: list[str], mark: str = "p") -> str:
    name = mark.split()[0]
    return "".join(f"<{mark}>{text}</{name}>" for text in texts)


def texts(dice: random.Random, count: int, sentences: int = 4) -> list[str]:
    return [prose(dice, sentences) for _ in range(count)]


def comments(dice: random.Random, count: int) -> str:
    return "".join(
        f'<li class="comment"><cite><a href=/u{n}>reader{n}</a></cite><time>9 May</time>'
        f"<p>{prose(dice, 2)}</p></li>"
        for n in range(count)
    )


def site(name: str, body: str, text: list[str], head: str = "") -> Page:
    title = "The longest arch - The Daily Span"
    return Page(
        name,
        f"""<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{title}</title>{head}
<style>.x{{color:red}}</style></head><body class="single">
<header class="site-header" role=banner><a class=logo href=/>The Daily Span</a>
<nav class=main-nav><ul><li><a href=/a>News</a><li><a href=/b>Bridges</a><li><a href=/c>About</a></ul></nav>
</header>
{body}
<footer class="site-footer"><p>Copyright 2026 The Daily Span. All rights reserved, in all countries.</p>
<ul><li><a href=/p>Privacy</a><li><a href=/i>Imprint</a></ul></footer>
<script>window.dataLayer = ["x"];</script></body></html>""",
        " ".join(text),
    )


def news_with_everything_around(dice: random.Random) -> Page:
    text = texts(dice, 9)
    caption = "The arch before the storm. Photo: A. Grapher"
    body = f"""<main id=content><article class="post">
<h1 class="entry-title">The longest arch</h1>
<div class="post-meta"><span class="author">By Ann Author</span>
<time datetime=2026-05-09>9 May 2026</time></div>
{SHARE}<div class="entry-content"><figure class="wp-block-image"><img src=/arch.jpg width=1200 alt=Arch>
<figcaption>{caption}</figcaption></figure>{paragraphs(text[:4])}
<div class="related-posts"><h3>More on this</h3><ul>{RELATED}</ul></div>{paragraphs(text[4:])}</div>
<div class="tags"><a href=/t/1>arch</a> <a href=/t/2>stone</a></div></article>
<section id="comments"><h2>Comments</h2><ol>{comments(dice, 12)}</ol></section></main>
<aside class="sidebar"><h3>Most read</h3><ol>{RELATED}</ol></aside>"""
    return site("news with everything", body, [caption, *text])


def blog_in_german(dice: random.Random) -> Page:
    sentences = [
        "Die Brücke über den Fluss wurde nach sieben Jahren, trotz aller Stürme, endlich eröffnet.",
        "Viele Menschen kamen, um sie zu sehen, und die meisten gingen zu Fuß hinüber.",
        "Größe, Höhe und Länge überraschten selbst jene, die sie geplant hatten.",
    ]
    text = [" ".join(dice.choices(sentences, k=5)) for _ in range(6)]
    body = f"""<div id=page><div id=main><div class="blog-post hentry"><h2 class=title>The longest arch</h2>
<div class=entry>{paragraphs(text)}</div><p class=postmetadata>Abgelegt unter <a href=/k>Brücken</a></p></div>
<ol class=commentlist>{comments(dice, 5)}</ol></div>
<div id=sidebar><ul><li><h2>Archiv</h2><ul>{RELATED}</ul></ul></div></div>"""
    return site("blog in German", body, text)


def blog_in_arabic(dice: random.Random) -> Page:
    words = ["الجسر", "فوق", "النهر", "بعد", "سنوات", "طويلة", "من", "العمل", "افتتح", "اليوم", "أمام"]
    text = ["، ".join(" ".join(dice.choices(words, k=9)) for _ in range(5)) + "." for _ in range(7)]
    widget = f"<div class=widget><ul>{RELATED}</ul></div>"
    body = f"<div dir=rtl class=post-body itemprop=articleBody>{paragraphs(text)}</div>{widget}"
    return site("blog in Arabic", body, text)


def documentation_with_code(dice: random.Random) -> Page:
    text = texts(dice, 5)
    code = 'from spans import Arch\n\narch = Arch(metres=120)\nprint(arch.load("wind"))'
    toc = "".join(f'<li><a href="#s{n}">Section {n}</a></li>' for n in range(5))
    parts = "".join(
        f'<section id=s{n}><h2>Section {n}<a class=headerlink href="#s{n}">¶</a></h2><p>{one}</p>'
        f'<div class="highlight-python"><div class="highlight"><pre><span class=k>{code}</span></pre></div>'
        "</div></section>"
        for n, one in enumerate(text)
    )
    body = f"""<div class="sphinxsidebar" role=navigation><h3>Table of contents</h3><ul>{toc}</ul></div>
<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
<h1>The longest arch</h1>{parts}</div></div></div></div>"""
    kept = [f"Section {n} ¶ {one} {code}" for n, one in enumerate(text)]
    return site("documentation with code", body, kept)


def encyclopedia_with_infobox(dice: random.Random) -> Page:
    text = texts(dice, 7)
    rows = "".join(f"<tr><th scope=row>Fact {n}</th><td>Value {n}</td></tr>" for n in range(8))
    linked = [one.replace("tower", '<a href="/wiki/Tower" title=Tower>tower</a>') for one in text]
    sup = '<sup id="cite_ref-1" class="reference"><a href="#cite_note-1">[1]</a></sup>'
    notes = "".join(
        f"<li id=cite_note-{n}><span>A source about the bridge, page {n}.</span></li>" for n in range(4)
    )
    body = f"""<div id="content" class="mw-body" role="main"><h1 id="firstHeading">The longest arch</h1>
<div id="bodyContent"><div id="siteSub" class="noprint">From an encyclopedia</div>
<div class="mw-parser-output">
<table class="infobox vcard"><caption>The arch</caption><tbody>{rows}</tbody></table>{paragraphs(linked[:2])}
<h2><span class="mw-headline">History</span><span class="mw-editsection">[<a href=/e>edit</a>]</span></h2>
{paragraphs(linked[2:5])}<p>{linked[5]}{sup}</p>
<h2><span class="mw-headline">Use</span></h2><p>{linked[6]}</p>
<div class="reflist"><ol class="references">{notes}</ol></div>
<div role="navigation" class="navbox"><table><tr><td><ul>{RELATED}</ul></td></tr></table></div>
</div></div></div>"""
    facts = " ".join(f"Fact {n} Value {n}" for n in range(8))
    sources = " ".join(f"A source about the bridge, page {n}." for n in range(4))
    kept = [
        "From an encyclopedia The arch",
        facts,
        *text[:2],
        "History [edit]",
        *text[2:6],
        "[1] Use",
        text[6],
        sources,
    ]
    return site("encyclopedia with infobox", body, kept)


def forum_thread(dice: random.Random) -> Page:
    text = texts(dice, 8)
    posts = "".join(
        f'<div class="message" id=p{n}><div class="message-user"><a href=/u{n}>user{n}</a></div>'
        f'<div class="message-body"><p>{one}</p></div></div>'
        for n, one in enumerate(text)
    )
    body = f'<div class="p-body-content"><h1>The longest arch</h1><div class="block-body">{posts}</div></div>'
    return site("forum thread", body, text)


def recipe(dice: random.Random) -> Page:
    text, steps = texts(dice, 3), texts(dice, 6, 2)
    parts = [f"{n} cups of ingredient number {n}, sifted" for n in range(2, 10)]
    body = f"""<article class="recipe"><header><h1>The longest arch</h1></header>{paragraphs(text)}
<h2>Ingredients</h2><ul class=ingredients>{paragraphs(parts, "li")}</ul>
<h2>Method</h2><ol>{paragraphs(steps, "li")}</ol>
<div class=rating><form><input type=radio><input type=radio><button>Rate</button></form></div></article>"""
    return site("recipe", body, [*text, "Ingredients", *parts, "Method", *steps])


def product_page(dice: random.Random) -> Page:
    text = texts(dice, 4)
    rows = "".join(f"<tr><td>Property {n}</td><td>{n} kN</td></tr>" for n in range(12))
    body = f"""<div class="product-page">
<div class="gallery-nav"><img src=/1.jpg><img src=/2.jpg><img src=/3.jpg></div>
<div class="buy-box"><form><select><option>1</select><button>Add to cart</button></form></div>
<div id="description" class="tab-content">{paragraphs(text)}<table>{rows}</table></div>
<div class="recommended"><h3>Others bought</h3><ul>{RELATED}</ul></div></div>"""
    return site("product page", body, [*text, *(f"Property {n} {n} kN" for n in range(12))])


def paginated(dice: random.Random) -> Page:
    text = texts(dice, 7)
    pages = "".join(f'<a href="?page={n}">{n}</a> ' for n in range(1, 8))
    body = f"""<div class="article-body"><h1>The longest arch</h1>{paragraphs(text)}
<div class="pagination"><a href="?page=1">Previous</a> {pages}<a href="?page=3">Next</a></div></div>"""
    return site("paginated", body, text)


def story_with_figures(dice: random.Random) -> Page:
    text = texts(dice, 8)
    captions = [f"The arch, seen from bank number {n}." for n in range(3)]
    figures = [
        f'<figure class="graf--figure"><div class="placeholder"><img data-src="/{n}.jpg" width=1400></div>'
        f"<figcaption class=imageCaption>{caption}</figcaption></figure>"
        for n, caption in enumerate(captions)
    ]
    sections = "".join(
        f"<section class=section><div class=section-inner>{paragraphs(text[at : at + 2])}"
        f"{figures[at // 2] if at < 6 else ''}</div></section>"
        for at in range(0, 8, 2)
    )
    body = f"""<div class="postArticle-content"><h1 class="graf--title">The longest arch</h1>{sections}</div>
<div class="followState"><button>Follow</button></div><div class="responses">{comments(dice, 3)}</div>"""
    kept = [*text[:2], captions[0], *text[2:4], captions[1], *text[4:6], captions[2], *text[6:]]
    return site("story with figures", body, kept)


def laid_out_in_tables(dice: random.Random) -> Page:
    text = texts(dice, 7)
    menu = "".join(f"<tr><td><a href=/{n}>Page {n}</a></td></tr>" for n in range(15))
    body = f"""<table width=100% cellpadding=0><tr><td width=150 valign=top><table>{menu}</table></td>
<td valign=top><font face=Verdana size=2>{paragraphs(text)}</font></td>
<td><a href=/ad><img src=/ad.gif></a></td></tr></table>"""
    return site("laid out in tables", body, text)


def paragraphs_of_breaks(dice: random.Random) -> Page:
    text = texts(dice, 8)
    story = f'<div class="content"><div id=story>{"<br/> <br/>".join(text)}</div></div>'
    body = f"{story}<div id=right><ul>{RELATED}</ul></div>"
    return site("paragraphs of breaks", body, text)


def accelerated(dice: random.Random) -> Page:
    text = texts(dice, 6)
    body = f"""<amp-sidebar id=menu><ul>{RELATED}</ul></amp-sidebar><main><article class="amp-wp-article">
<header class="amp-wp-article-header"><h1>The longest arch</h1></header>
<amp-img src=/a.jpg width=600 height=400></amp-img><div class="amp-wp-article-content">{paragraphs(text)}
<amp-ad width=300 height=250></amp-ad></div></article></main>"""
    return site("accelerated", body, text)


def live_blog(dice: random.Random) -> Page:
    text = texts(dice, 10, 3)
    posts = "".join(
        f'<div class="live-post"><div class="live-time"><time>1{n}:05</time></div>'
        f"<h3>Update {n}</h3><p>{one}</p></div>"
        for n, one in enumerate(text)
    )
    body = f'<div class="live-blog"><h1>The longest arch</h1><div class="live-posts">{posts}</div></div>'
    return site("live blog", body, [f"1{n}:05 Update {n} {one}" for n, one in enumerate(text)])


def interview(dice: random.Random) -> Page:
    asked = ["What does the wind do to it?", "Who paid for all of it?", "Would you build it again?"]
    answers = texts(dice, 6)
    parts = "".join(
        f"<p><strong>{question}</strong></p>{paragraphs(answers[2 * n : 2 * n + 2])}"
        for n, question in enumerate(asked)
    )
    body = f'<div class="article__body"><h1>The longest arch</h1>{parts}</div>{SHARE}'
    kept = [f"{question} {answers[2 * n]} {answers[2 * n + 1]}" for n, question in enumerate(asked)]
    return site("interview", body, kept)


SITES: tuple[Callable[[random.Random], Page], ...] = (
    news_with_everything_around,
    blog_in_german,
    blog_in_arabic,
    documentation_with_code,
    encyclopedia_with_infobox,
    forum_thread,
    recipe,
    product_page,
    paginated,
    story_with_figures,
    laid_out_in_tables,
    paragraphs_of_breaks,
    accelerated,
    live_blog,
    interview,
)
