"""Article pages in the shapes of real sites, with the date, the author and the publisher that each states."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

_TEXT = (
    "<p>The mill was built in 1862, and it ground corn for three villages until the river was moved in May 1911. It stands empty now, but its wheel still turns when the water is high.</p>"
    * 5
)
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MOIS = [
    "janvier",
    "février",
    "mars",
    "avril",
    "mai",
    "juin",
    "juillet",
    "août",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
]
_MONATE = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
]
_MESES = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
]
_RELATED = "<aside class='related'><h3>Related</h3><ul><li><a href='/a'>An older story</a> <time datetime='2011-01-02'>2 January 2011</time></li></ul></aside>"
_FOOT = "<footer><p>© 2026 All rights reserved.</p></footer>"


@dataclass(frozen=True)
class Shape:
    name: str
    url: str
    html: str
    published: str
    author: str
    publisher: str


@dataclass(frozen=True)
class _Facts:
    day: date
    author: str
    title: str

    @property
    def iso(self) -> str:
        return self.day.isoformat()


def _html(title: str, head: str, body: str, lang: str = "en") -> str:
    return f'<!DOCTYPE html><html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>{head}</head><body>{body}{_FOOT}</body></html>'


def _ld(value: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def _wordpress_yoast(f: _Facts) -> Shape:
    graph = [
        {
            "@type": "WebPage",
            "@id": "https://mill.test/p#w",
            "datePublished": f"{f.iso}T08:00:00+00:00",
            "dateModified": "2025-02-02T00:00:00+00:00",
        },
        {"@type": "Organization", "@id": "https://mill.test/#org", "name": "Mill Notes"},
        {"@type": "Person", "@id": "https://mill.test/#p", "name": f.author},
        {
            "@type": "Article",
            "datePublished": f"{f.iso}T08:00:00+00:00",
            "author": {"@id": "https://mill.test/#p"},
            "publisher": {"@id": "https://mill.test/#org"},
        },
    ]
    body = f"<article class='post hentry'><header class='entry-header'><h1>{f.title}</h1><div class='entry-meta'>By <a rel='author' href='/author/x'>{f.author}</a></div></header>{_TEXT}</article>{_RELATED}"
    return Shape(
        "WordPress with Yoast",
        "https://mill.test/p",
        _html(f"{f.title} - Mill Notes", _ld({"@graph": graph}), body),
        f.iso,
        f.author,
        "Mill Notes",
    )


def _wordpress_plain(f: _Facts) -> Shape:
    d = f.day
    body = f"<div class='post'><h1 class='entry-title'>{f.title}</h1><div class='entry-meta'><span class='posted-on'>Posted on <time class='entry-date published' datetime='{f.iso}T10:00:00+01:00'>{_MONTHS[d.month - 1]} {d.day}, {d.year}</time><time class='updated' datetime='2025-05-05'>May 5, 2025</time></span> <span class='byline'>by <span class='author vcard'><a href='/author/a'>{f.author}</a></span></span></div>{_TEXT}</div>{_RELATED}"
    return Shape(
        "WordPress, plain theme",
        "https://hill.test/?p=4",
        _html(f"{f.title} – Hill Diary", "<meta property='og:site_name' content='Hill Diary'>", body),
        f.iso,
        f.author,
        "Hill Diary",
    )


def _ghost(f: _Facts) -> Shape:
    head = f"<meta property='og:site_name' content='Weir Letters'><meta property='og:type' content='article'><meta property='article:published_time' content='{f.iso}T05:30:00.000Z'><meta name='twitter:label1' content='Written by'><meta name='twitter:data1' content='{f.author}'>"
    ld = _ld(
        {
            "@type": "Article",
            "publisher": {
                "@type": "Organization",
                "name": "Weir Letters",
                "logo": {"@type": "ImageObject", "url": "https://w.test/l.png"},
            },
            "author": {"@type": "Person", "name": f.author, "sameAs": []},
            "datePublished": f"{f.iso}T05:30:00.000Z",
        }
    )
    return Shape(
        "Ghost",
        "https://weir.test/a/",
        _html(f.title, head + ld, f"<main><article><h1>{f.title}</h1>{_TEXT}</article></main>"),
        f.iso,
        f.author,
        "Weir Letters",
    )


def _medium(f: _Facts) -> Shape:
    head = f"<meta property='og:site_name' content='Longform'><meta property='article:published_time' content='{f.iso}T20:12:11.000Z'><meta name='author' content='{f.author}'><meta property='article:author' content='https://longform.test/@a'>"
    body = f"<article><h1>{f.title}</h1><div><a rel='author' href='/@a'>{f.author}</a><span>Follow</span><span>4 min read</span></div>{_TEXT}</article>"
    return Shape(
        "Medium-like",
        "https://longform.test/@a/b",
        _html(f"{f.title} | by {f.author} | Longform", head, body),
        f.iso,
        f.author,
        "Longform",
    )


def _nyt(f: _Facts) -> Shape:
    head = f"<meta name='byl' content='By {f.author}'><meta name='pdate' content='{f.iso.replace('-', '')}'><meta property='article:published_time' content='{f.iso}T09:00:12.000Z'><meta property='og:site_name' content=''>"
    ld = _ld(
        [
            {
                "@context": "http://schema.org",
                "@type": "NewsArticle",
                "datePublished": f"{f.iso}T09:00:12.000Z",
                "author": [{"@type": "Person", "name": f.author, "url": "https://t.test/by/a"}],
                "publisher": {"@id": "https://t.test/#publisher"},
            },
            {
                "@type": "NewsMediaOrganization",
                "@id": "https://t.test/#publisher",
                "name": "The Harbour Times",
            },
        ]
    )
    body = f"<header class='css-1'><h1>{f.title}</h1><p class='css-byline'>By <span itemprop='name'>{f.author}</span></p></header><section name='articleBody'>{_TEXT}</section>"
    return Shape(
        "NYT-like",
        f"https://t.test/{f.day:%Y/%m/%d}/world/mill.html",
        _html(f"{f.title} - The Harbour Times", head + ld, body, "en-US"),
        f.iso,
        f.author,
        "The Harbour Times",
    )


def _bbc(f: _Facts) -> Shape:
    d = f.day
    body = f"<main><article><header data-component='headline-block'><h1>{f.title}</h1></header><div data-component='byline-block'><div class='ssrcss-BylineComponent'><span class='ssrcss-TextContributorName'>By {f.author}</span><div>Culture correspondent</div></div><time data-testid='timestamp' datetime='{f.iso}T06:00:00.000Z'>{d.day} {_MONTHS[d.month - 1]} {d.year}</time></div>{_TEXT}</article></main>{_RELATED}"
    return Shape(
        "BBC-like",
        "https://b.test/news/articles/c1",
        _html(
            f"{f.title} - Coast News", "<meta property='og:site_name' content='Coast News'>", body, "en-GB"
        ),
        f.iso,
        f.author,
        "Coast News",
    )


def _arxiv(f: _Facts) -> Shape:
    first, _, last = f.author.rpartition(" ")
    head = f"<meta name='citation_title' content='{f.title}'><meta name='citation_author' content='{last}, {first}'><meta name='citation_date' content='{f.day:%Y/%m/%d}'><meta name='citation_online_date' content='{f.day:%Y/%m/%d}'><meta property='og:site_name' content='arXiv.org'>"
    body = f"<div id='abs'><div class='dateline'>[Submitted on {f.day.day} {_MONTHS[f.day.month - 1][:3]} {f.day.year}]</div><h1 class='title'>{f.title}</h1><div class='authors'><a>{f.author}</a></div><blockquote class='abstract'>{_TEXT}</blockquote></div>"
    return Shape(
        "arXiv",
        "https://a.test/abs/2403.1",
        _html(f"[2403.1] {f.title}", head, body),
        f.iso,
        f.author,
        "arXiv.org",
    )


def _pubmed(f: _Facts) -> Shape:
    head = f"<meta name='citation_authors' content='{f.author};'><meta name='citation_date' content='{f.day:%m/%d/%Y}'><meta name='citation_journal_title' content='Journal of Mills'><meta name='citation_publisher' content='J Mills'><meta property='og:site_name' content='PubMed'>"
    body = f"<main class='article-details'><div class='article-source'><button>J Mills</button>. {f.day.year} {_MONTHS[f.day.month - 1][:3]} {f.day.day};12(3):4-9.</div><h1>{f.title}</h1><div class='abstract'>{_TEXT}</div></main>"
    return Shape(
        "PubMed",
        "https://pubmed.test/1/",
        _html(f"{f.title} - PubMed", head, body),
        f.iso,
        f.author,
        "Journal of Mills",
    )


def _gov(f: _Facts) -> Shape:
    head = f"<meta name='DC.date.issued' content='{f.iso}'><meta name='dcterms.creator' content='{f.author}'><meta name='DC.publisher' content='Department of Rivers'>"
    return Shape(
        "ministry with Dublin Core",
        "https://rivers.gov.test/n/4",
        _html(
            f"{f.title} | Department of Rivers",
            head,
            f"<main><h1>{f.title}</h1>{_TEXT}<p>Last updated: 1 January 2025</p></main>",
        ),
        f.iso,
        f.author,
        "Department of Rivers",
    )


def _us_agency(f: _Facts) -> Shape:
    d = f.day
    body = f"<main><h1>{f.title}</h1><div class='article-meta'><p class='byline'>By {f.author}, Office of Rivers</p><p class='press-date'>{_MONTHS[d.month - 1]} {d.day}, {d.year}</p></div>{_TEXT}</main>"
    return Shape(
        "agency without metadata",
        "https://water.gov/news/mill",
        _html(f"{f.title} | Water.gov", "<meta property='og:site_name' content='Water Agency'>", body),
        f.iso,
        f.author,
        "Water Agency",
    )


def _chinese_portal(f: _Facts) -> Shape:
    d = f.day
    body = f"<div class='main-title'><h1>{f.title}</h1></div><div class='date-source'><span class='date'>{d.year}年{d.month:02}月{d.day:02}日 10:22</span> <span class='source'>来源：新河网</span> <span>作者：{f.author}</span></div><div class='article' id='article'>{_TEXT}</div>"
    return Shape(
        "Chinese portal",
        "https://cn.test/doc-1.shtml",
        _html(f"{f.title}_新闻", "", body, "zh-CN"),
        f.iso,
        f.author,
        "新河网",
    )


def _chinese_government(f: _Facts) -> Shape:
    head = f"<meta name='PubDate' content='{f.iso} 09:30'><meta name='ContentSource' content='x'><meta name='SiteName' content='江河网'><meta name='author' content='{f.author}'>"
    body = f"<h1>{f.title}</h1><div class='pages-date'>{f.iso} 09:30 <span>来源： 江河日报</span></div><div class='pages_content'>{_TEXT}</div>"
    return Shape(
        "Chinese government",
        "https://cngov.test/c",
        _html(f.title, head, body, "zh"),
        f.iso,
        f.author,
        "江河日报",
    )


def _japanese(f: _Facts) -> Shape:
    d = f.day
    body = f"<main><article><h1>{f.title}</h1><div class='article-info'><time>{d.year}年{d.month}月{d.day}日 10時00分</time><span class='writer'>記者：{f.author}</span></div>{_TEXT}</article></main>"
    return Shape(
        "Japanese news",
        "https://jp.test/articles/1",
        _html(f"{f.title}：川新聞", "<meta property='og:site_name' content='川新聞'>", body, "ja"),
        f.iso,
        f.author,
        "川新聞",
    )


def _french(f: _Facts) -> Shape:
    d = f.day
    day = "1er" if d.day == 1 else d.day
    body = f"<main><article><header><h1>{f.title}</h1><p class='meta__authors'>Par <a rel='author'>{f.author}</a></p><p class='meta__publisher'>Publié le {day} {_MOIS[d.month - 1]} {d.year} à 10h00, modifié le 3 janvier 2025</p></header>{_TEXT}</article></main>"
    return Shape(
        "French press",
        "https://fr.test/a",
        _html(f"{f.title} - Le Fleuve", "<meta property='og:site_name' content='Le Fleuve'>", body, "fr"),
        f.iso,
        f.author,
        "Le Fleuve",
    )


def _german(f: _Facts) -> Shape:
    d = f.day
    body = f"<article><h1>{f.title}</h1><div class='article-header__author'>Von {f.author}</div><div class='article-header__publish-date'>{d.day:02}.{d.month:02}.{d.year}, 11:04 Uhr</div>{_TEXT}</article>"
    return Shape(
        "German press",
        "https://de.test/a-1.html",
        _html(f"{f.title} - Flussblatt", "<meta property='og:site_name' content='Flussblatt'>", body, "de"),
        f.iso,
        f.author,
        "Flussblatt",
    )


def _german_long(f: _Facts) -> Shape:
    d = f.day
    body = f"<main><h1>{f.title}</h1><p class='metatextline'>Stand: {d.day}. {_MONATE[d.month - 1]} {d.year} 08:12 Uhr</p><p class='authorline'>Von {f.author}</p>{_TEXT}</main>"
    return Shape(
        "German broadcaster",
        "https://sender.test/x",
        _html(
            f"{f.title} | Sender am Fluss",
            "<meta property='og:site_name' content='Sender am Fluss'>",
            body,
            "de",
        ),
        f.iso,
        f.author,
        "Sender am Fluss",
    )


def _spanish(f: _Facts) -> Shape:
    d = f.day
    body = f"<article><h1>{f.title}</h1><div class='a_md'><div class='a_md_a'><a rel='author' href='/autor'>{f.author}</a></div><div class='a_md_f'><span class='fecha'>{d.day} de {_MESES[d.month - 1]} de {d.year}</span></div></div>{_TEXT}</article>"
    return Shape(
        "Spanish press",
        "https://es.test/n.html",
        _html(f"{f.title} | El Río", "<meta property='og:site_name' content='El Río'>", body, "es"),
        f.iso,
        f.author,
        "El Río",
    )


def _microdata(f: _Facts) -> Shape:
    body = f"<article itemscope itemtype='http://schema.org/NewsArticle'><h1 itemprop='headline'>{f.title}</h1><span itemprop='author' itemscope itemtype='http://schema.org/Person'><span itemprop='name'>{f.author}</span></span><meta itemprop='datePublished' content='{f.iso}'><span itemprop='publisher' itemscope><meta itemprop='name' content='Old Gazette'></span><div itemprop='articleBody'>{_TEXT}</div></article>"
    return Shape("microdata", "https://old.test/1", _html(f.title, "", body), f.iso, f.author, "Old Gazette")


def _url_only(f: _Facts) -> Shape:
    return Shape(
        "date in the address alone",
        f"https://stone.test/{f.day:%Y/%m/%d}/mill",
        _html(
            f"{f.title} | Stone",
            "<meta name='author' content='" + f.author + "'>",
            f"<article><h1>{f.title}</h1>{_TEXT}</article>",
        ),
        f.iso,
        f.author,
        "Stone",
    )


def _blog_hugo(f: _Facts) -> Shape:
    d = f.day
    body = f"<main><article><header class='post-header'><h1 class='post-title'>{f.title}</h1><div class='post-meta'><span title='{f.iso} 00:00:00 +0000 UTC'>{_MONTHS[d.month - 1]} {d.day}, {d.year}</span>&nbsp;·&nbsp;3 min&nbsp;·&nbsp;<span class='author'>{f.author}</span></div></header>{_TEXT}</article></main>"
    return Shape(
        "Hugo blog",
        "https://hugo.test/posts/m/",
        _html(f"{f.title} | Creek Blog", "<meta property='og:site_name' content='Creek Blog'>", body),
        f.iso,
        f.author,
        "Creek Blog",
    )


_FACTS = (
    _Facts(date(2024, 3, 12), "Jane Doe", "The quiet mill"),
    _Facts(date(2019, 11, 1), "Paul de Vries", "Water over stones"),
    _Facts(date(2022, 8, 30), "Ana García López", "A wheel that turns"),
)
_CHINESE = ("张小河", "李明", "王大山")
_JAPANESE = ("山田太郎", "佐藤花子", "鈴木一郎")
_SHAPES: tuple[Callable[[_Facts], Shape], ...] = (
    _wordpress_yoast, _wordpress_plain, _ghost, _medium, _nyt, _bbc, _arxiv, _pubmed, _gov, _us_agency, _chinese_portal,
    _chinese_government, _japanese, _french, _german, _german_long, _spanish, _microdata, _url_only, _blog_hugo,
)  # fmt: skip


def _make_shapes() -> Iterator[Shape]:
    for make in _SHAPES:
        for number, facts in enumerate(_FACTS):
            own = facts
            if make in (_chinese_portal, _chinese_government):
                own = _Facts(facts.day, _CHINESE[number], "河边的磨坊")
            elif make is _japanese:
                own = _Facts(facts.day, _JAPANESE[number], "川辺の水車小屋")
            yield make(own)


SHAPES = tuple(_make_shapes())
