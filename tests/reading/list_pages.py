"""Pages that are lists or tables, in the markup of many kinds of sites, each with what must arrive of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

SITE = "https://shop.test"
URL = f"{SITE}/parts/list?page=2"
NAMES = ("Anchor", "Bolt", "Clamp", "Drill", "Elbow", "Flange", "Gasket", "Hinge", "Insert", "Joint")
MENU = "".join(f"<li><a href=/area/{n}>Area of work {n}</a></li>" for n in range(6))


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page, what of it must be read, and what must not."""

    name: str
    html: str
    present: tuple[str, ...]
    absent: tuple[str, ...] = ("Area of work",)
    links: dict[str, str] = field(default_factory=dict)
    """The addresses by the text of their links."""


def page(name: str, body: str, head: str = "", lang: str = "en", title: str = "Parts in stock") -> str:
    return f"""<!DOCTYPE html><html lang={lang}><head><meta charset=utf-8><title>{title}</title>{head}</head>
<body class="{name}"><header class=site-header><a class=logo href=/>Shop</a><nav><ul>{MENU}</ul></nav></header>
{body}
<footer><ul><li><a href=/imprint>Imprint of the shop</a></ul></footer></body></html>"""


def rows(cells: int = 3) -> str:
    return "".join(
        f"<tr><td><a href=/part/{n}>{name}</a>" + f"<td>{n}{n} pieces" * (cells - 1) + "</tr>"
        for n, name in enumerate(NAMES)
    )


def entries() -> dict[str, str]:
    return {name: f"{SITE}/part/{n}" for n, name in enumerate(NAMES)}


def table(inner: str = "") -> str:
    return f"<table><thead><tr><th>Part<th>Stock<th>Ordered</thead><tbody>{rows()}</tbody>{inner}</table>"


def bootstrap_table() -> ListPage:
    pager = """<nav aria-label="Page navigation"><ul class=pagination>
<li class=page-item><a class=page-link href="?page=1">Previous</a></li>
<li class=page-item><a class=page-link href="?page=1">1</a></li>
<li class="page-item active"><span class=page-link>2</span></li>
<li class=page-item><a class=page-link href="?page=3">3</a></li>
<li class=page-item><a class=page-link href="?page=3">Next</a></li></ul></nav>"""
    body = f"<div class=container><h1>Stock of the eastern depot</h1><p>As of May.</p>{table()}{pager}</div>"
    return ListPage(
        "bootstrap table",
        page("t", body),
        ("Stock of the eastern depot", "As of May.", "| Part | Stock | Ordered |"),
        links=entries() | {"Next": f"{SITE}/parts/list?page=3", "1": f"{SITE}/parts/list?page=1"},
    )


def bare_table() -> ListPage:
    body = f"<h1>All parts</h1><p>Prices without tax.</p>{table()}<p><a href=list?page=3>Next page</a></p>"
    return ListPage(
        "bare table",
        page("t", body),
        ("All parts", "Prices without tax.", "| Part | Stock | Ordered |", "| 99 pieces | 99 pieces |"),
        links=entries() | {"Next page": f"{SITE}/parts/list?page=3"},
    )


def table_with_link_in_the_head_of_the_document() -> ListPage:
    body = f"<main><h2>Parts, page two</h2>{table()}</main>"
    head = "<link rel=next href='/parts/list?page=3'><link rel=prev href='/parts/list?page=1'>"
    return ListPage(
        "link rel=next alone",
        page("t", body, head),
        ("Parts, page two", "| Part | Stock | Ordered |"),
        links=entries() | {"Next": f"{SITE}/parts/list?page=3", "Previous": f"{SITE}/parts/list?page=1"},
    )


def pager_in_the_foot_of_the_table() -> ListPage:
    foot = "<tfoot><tr><td colspan=3><a href='?page=1'>1</a> 2 <a href='?page=3'>3</a> <a href='?page=3'>»</a></tfoot>"
    return ListPage(
        "pager in tfoot",
        page("t", f"<div id=content><h1>Stock list</h1>{table(foot)}</div>"),
        ("Stock list", "| Part | Stock | Ordered |", "99 pieces"),
        links=entries() | {"»": f"{SITE}/parts/list?page=3"},
    )


def search_results() -> ListPage:
    results = "".join(
        f"""<div class=result><h3><a href=/part/{n}>{name}</a></h3><cite>shop.test › part</cite>
<p class=snippet>The {name} of the series {n}, for bridges of any length, with a certificate.</p></div>"""
        for n, name in enumerate(NAMES)
    )
    pager = """<div class=pages><b>2</b> <a href="?q=p&start=20" aria-label="Page 3">3</a>
<a href="?q=p&start=30" aria-label="Page 4">4</a>
<a id=pnnext href="?q=p&start=20" aria-label="Next page"><svg></svg></a></div>"""
    return ListPage(
        "search results",
        page("s", f"<div id=main><div>About 95 results for part</div>{results}{pager}</div>"),
        ("About 95 results", "The Joint of the series 9"),
        links=entries()
        | {"4": f"{SITE}/parts/list?q=p&start=30", "Next page": f"{SITE}/parts/list?q=p&start=20"},
    )


def product_cards() -> ListPage:
    cards = "".join(
        f"""<li class="product-card"><a href=/part/{n}><img src=/{n}.jpg alt=""></a>
<h2><a href=/part/{n}>{name}</a></h2><span class=price>€ {n}9.50</span><button>Add</button></li>"""
        for n, name in enumerate(NAMES)
    )
    body = f"""<main><nav class=breadcrumb><a href=/>Home</a></nav><h1>Fastenings</h1>
<ul class=products>{cards}</ul><nav class="pagination"><a class="next page-numbers" href="/parts/page/3/">→</a>
<a class=page-numbers href="/parts/page/1/">1</a><a class=page-numbers href="/parts/page/3/">3</a></nav></main>"""
    return ListPage(
        "product cards",
        page("woocommerce", body),
        ("Fastenings", "€ 99.50", "€ 09.50"),
        links=entries() | {"→": f"{SITE}/parts/page/3/", "1": f"{SITE}/parts/page/1/"},
    )


def cards_that_are_links() -> ListPage:
    cards = "".join(
        f"<a class=card href=/part/{n}><div class=card-body><h3>{name}</h3><p>Size {n}0 mm</p></div></a>"
        for n, name in enumerate(NAMES)
    )
    body = f"<div class=wrap><h1>Catalogue</h1><div class=grid>{cards}</div><a href=/parts/list?page=3 rel=next>Go on</a></div>"
    return ListPage(
        "cards that are links",
        page("c", body),
        ("Catalogue", "Size 90 mm"),
        links=entries() | {"Go on": f"{SITE}/parts/list?page=3"},
    )


def load_more() -> ListPage:
    items = "".join(f"<li><a href=/part/{n}>{name}</a> {n} in stock</li>" for n, name in enumerate(NAMES))
    body = f"""<section><h1>Parts in the yard</h1><ul class=items>{items}</ul>
<a class="btn load-more" href="/parts/list?after=Joint">Load more</a></section>"""
    return ListPage(
        "load more",
        page("l", body),
        ("Parts in the yard", "9 in stock"),
        links=entries() | {"Load more": f"{SITE}/parts/list?after=Joint"},
    )


def button_with_address() -> ListPage:
    items = "".join(f"<li><a href=/part/{n}>{name}</a> {n} in stock</li>" for n, name in enumerate(NAMES))
    body = f"""<h1>Parts in the yard</h1><ul class=items>{items}</ul>
<button hx-get="/parts/list?page=3" hx-target=".items">Show more</button>"""
    return ListPage(
        "load-more button",
        page("l", body),
        ("Parts in the yard", "9 in stock"),
        links=entries() | {"Show more": f"{SITE}/parts/list?page=3"},
    )


def form_of_pages() -> ListPage:
    body = f"""<h1>Stock</h1>{table()}<form action=/parts/list method=get><input type=hidden name=q value="a b">
<button name=page value=1>1</button><button name=page value=3>3</button><button name=page value=3>Next</button></form>"""
    return ListPage(
        "form of pages",
        page("f", body),
        ("Stock", "| Part | Stock | Ordered |"),
        links=entries() | {"Next": f"{SITE}/parts/list?q=a+b&page=3"},
    )


def definition_list() -> ListPage:
    terms = "".join(
        f"<dt><a href=/part/{n}>{name}</a></dt><dd>Steel, galvanised, {n} mm</dd>"
        for n, name in enumerate(NAMES)
    )
    body = f"""<div class=content><h1>Glossary of parts</h1><dl>{terms}</dl>
<div class=pager><a href="?page=3">Next &rsaquo;</a></div></div>"""
    return ListPage(
        "definition list",
        page("d", body),
        ("Glossary of parts", "Steel, galvanised, 9 mm"),
        links=entries() | {"Next ›": f"{SITE}/parts/list?page=3"},
    )


def index_from_a_to_z() -> ListPage:
    sections = "".join(
        f"<h2>{name[0]}</h2><ul><li><a href=/part/{n}>{name}</a><li><a href=/part/{n}b>{name} B</a></ul>"
        for n, name in enumerate(NAMES)
    )
    body = f"<div id=mw-content-text><h1>Index of parts</h1>{sections}</div>"
    return ListPage(
        "index from A to Z",
        page("i", body),
        ("Index of parts", *(f"## {name[0]}" for name in NAMES)),
        links=entries() | {f"{name} B": f"{SITE}/part/{n}b" for n, name in enumerate(NAMES)},
    )


def news_in_a_layout_table() -> ListPage:
    stories = "".join(
        f"""<tr class=athing><td class=title>{n + 1}.<td><a href=/part/{n}>{name}</a></tr>
<tr><td colspan=1><td class=subtext>{n} points by <a href=/user/{n}>user{n}</a></tr><tr class=spacer></tr>"""
        for n, name in enumerate(NAMES)
    )
    body = f"""<center><table id=main width=85%><tr><td><table><tr><td><b>Parts news</b></table></td></tr>
<tr><td><table class=itemlist>{stories}<tr><td><td class=title><a href="?p=3" class=morelink rel=next>More</a></tr>
</table></td></tr></table></center>"""
    return ListPage(
        "news in a layout table",
        page("n", body),
        ("Parts news", "9 points by"),
        links=entries() | {"More": f"{SITE}/parts/list?p=3"},
    )


def list_in_a_layout_table() -> ListPage:
    items = "".join(f"<li><a href=/part/{n}>{name}</a>, {n} kg</li>" for n, name in enumerate(NAMES))
    body = f"""<table width=100%><tr><td colspan=2><h1>Parts of 1998</h1></td></tr>
<tr><td valign=top><ul>{items}</ul></td></tr>
<tr><td colspan=2 align=center><a href=list1.html>1</a> | 2 | <a href=list3.html>3</a> | <a href=list3.html>next</a></td></tr>
</table>"""
    return ListPage(
        "list in a layout table",
        page("o", body),
        ("Parts of 1998", "9 kg"),
        links=entries() | {"next": f"{SITE}/parts/list3.html", "1": f"{SITE}/parts/list1.html"},
    )


def german() -> ListPage:
    body = f"""<div class=inhalt><h1>Teile am Lager</h1>{table()}
<div class=blaettern><a href="/parts/list?seite=1">Zurück</a><a href="/parts/list?seite=3">Nächste Seite</a></div></div>"""
    return ListPage(
        "german",
        page("g", body, lang="de"),
        ("Teile am Lager", "| Part | Stock | Ordered |"),
        links=entries()
        | {"Nächste Seite": f"{SITE}/parts/list?seite=3", "Zurück": f"{SITE}/parts/list?seite=1"},
    )


def japanese() -> ListPage:
    items = "".join(f"<li><a href=/part/{n}>{name}</a>　在庫{n}個</li>" for n, name in enumerate(NAMES))
    body = f"<div><h1>部品一覧</h1><ul>{items}</ul><p><a href='?page=1'>前へ</a> <a href='?page=3'>次へ</a></p></div>"
    return ListPage(
        "japanese",
        page("j", body, lang="ja"),
        ("部品一覧", "在庫9個"),
        links=entries() | {"次へ": f"{SITE}/parts/list?page=3", "前へ": f"{SITE}/parts/list?page=1"},
    )


def language_that_no_word_list_holds() -> ListPage:
    body = f"""<div><h1>Páirteanna</h1>{table()}<div class=x7><span><a href="?l=1">1</a></span><span>2</span>
<span><a href="?l=3">3</a></span><span><a href="?l=3">Ar aghaidh</a></span></div></div>"""
    return ListPage(
        "irish",
        page("r", body, lang="ga"),
        ("Páirteanna", "| Part | Stock | Ordered |"),
        links=entries() | {"Ar aghaidh": f"{SITE}/parts/list?l=3", "3": f"{SITE}/parts/list?l=3"},
    )


def arabic_numbers() -> ListPage:
    items = "".join(f"<li><a href=/part/{n}>{name}</a> متوفر</li>" for n, name in enumerate(NAMES))
    body = f"""<div><h1>قائمة القطع</h1><ol>{items}</ol>
<div><a href="?page=1">١</a> ٢ <a href="?page=3">٣</a> <a href="?page=4">٤</a></div></div>"""
    return ListPage(
        "arabic numbers",
        page("a", body, lang="ar"),
        ("قائمة القطع", "متوفر"),
        links=entries() | {"٣": f"{SITE}/parts/list?page=3", "٤": f"{SITE}/parts/list?page=4"},
    )


def blog_index() -> ListPage:
    posts = "".join(
        f"""<article class=post><header><h2 class=entry-title><a href=/part/{n}>{name}</a></h2></header>
<div class=entry-summary><p>{name}s were fitted in the river bridge this week, after the winter, by a crew
of {n} people who had come over from the northern works.</p></div></article>"""
        for n, name in enumerate(NAMES)
    )
    body = f"""<div id=primary><main id=main><h1 class=page-title>Category: Works</h1>{posts}
<nav class="navigation posts-navigation"><div class=nav-previous><a href="/works/page/3/">Older posts</a></div>
<div class=nav-next><a href="/works/">Newer posts</a></div></nav></main></div>"""
    return ListPage(
        "blog index",
        page("archive", body),
        ("Category: Works", "of 9 people"),
        links=entries() | {"Older posts": f"{SITE}/works/page/3/", "Newer posts": f"{SITE}/works/"},
    )


def forum_of_divs() -> ListPage:
    topics = "".join(
        f"""<div class=row><div class=topic><a href=/part/{n}>{name}</a></div><div class=by>by user{n}</div>
<div class=replies>{n}{n} replies</div></div>"""
        for n, name in enumerate(NAMES)
    )
    body = f"""<div class=forumbg><h2>Questions about parts</h2><div class=topics>{topics}</div></div>
<div class=action-bar><div class=pagination>95 topics <ul><li class=active><span>2</span></li>
<li><a href=./f.php?start=50>3</a></li><li class="arrow next"><a href=./f.php?start=50 rel=next title="Next"><i></i></a></li></ul></div></div>"""
    return ListPage(
        "forum of divs",
        page("forum", body),
        ("Questions about parts", "99 replies", "by user9"),
        links=entries() | {"3": f"{SITE}/parts/f.php?start=50", "Next": f"{SITE}/parts/f.php?start=50"},
    )


def roles_of_a_grid() -> ListPage:
    lines = "".join(
        f"<div role=row><div role=cell><a href=/part/{n}>{name}</a></div><div role=cell>{n}{n} pieces</div></div>"
        for n, name in enumerate(NAMES)
    )
    body = f"""<div role=main><div role=heading aria-level=1>Stock by depot</div><div role=table>
<div role=row><div role=columnheader>Part</div><div role=columnheader>Stock</div></div>{lines}</div>
<div role=navigation aria-label="Pagination"><a aria-label="Go to next page" href="/parts/list?page=3"><svg></svg></a></div></div>"""
    return ListPage(
        "roles of a grid",
        page("app", body),
        ("Stock by depot", "99 pieces", "Part"),
        links=entries() | {"Go to next page": f"{SITE}/parts/list?page=3"},
    )


def paragraphs_of_links() -> ListPage:
    lines = "".join(f"<p><a href=/part/{n}>{name}</a> ({n} kB)</p>" for n, name in enumerate(NAMES))
    body = f"<h1>Downloads for parts</h1>{lines}<p align=right><a href='?page=3'>&gt;&gt;</a></p>"
    return ListPage(
        "paragraphs of links",
        page("p", body),
        ("Downloads for parts", "(9 kB)"),
        links=entries() | {">>": f"{SITE}/parts/list?page=3"},
    )


def lines_with_breaks() -> ListPage:
    lines = "".join(f"<a href=/part/{n}>{name}</a> {n}k<br>" for n, name in enumerate(NAMES))
    body = f"<h1>Index of /parts</h1><hr><div>{lines}</div><hr><a href='?page=3'>next 10</a>"
    return ListPage(
        "lines with breaks",
        page("b", body),
        ("Index of /parts", "9k"),
        links=entries() | {"next 10": f"{SITE}/parts/list?page=3"},
    )


def table_among_prose_of_a_category() -> ListPage:
    intro = "<p>Parts are held in three depots, of which the eastern one is the largest, and are counted in May. </p>"
    body = f"<div class=page><h1>Depots</h1>{intro * 2}{table()}<div class=pg><a href='?page=1'>1</a><a href='?page=3'>3</a></div></div>"
    return ListPage(
        "table under prose",
        page("k", body),
        ("Depots", "Parts are held in three depots", "| Part | Stock | Ordered |"),
        links=entries() | {"3": f"{SITE}/parts/list?page=3"},
    )


def table_of_numbers_only() -> ListPage:
    lines = "".join(f"<tr><td>{year}<td>{year * 3}<td>{year * 7}</tr>" for year in range(1990, 2020))
    body = f"""<div id=data><h1>Traffic over the bridge</h1><table><caption>Vehicles by year</caption>
<tr><th>Year<th>Cars<th>All</tr>{lines}</table><a href="/parts/list?from=2020">Weiter »</a></div>"""
    return ListPage(
        "table of numbers",
        page("z", body),
        (
            "Traffic over the bridge",
            "Vehicles by year",
            "| Year | Cars | All |\n| --- | --- | --- |\n| 1990",
            "| 2019 | 6057 | 14133 |",
        ),
        links={"Weiter »": f"{SITE}/parts/list?from=2020"},
    )


def base_of_addresses() -> ListPage:
    items = "".join(f"<li><a href=../part/{n}>{name}</a> in stock</li>" for n, name in enumerate(NAMES))
    body = (
        f"<h1>Parts by base</h1><ul>{items}</ul><a rel='nofollow next' href='list?page=3'>Further parts</a>"
    )
    return ListPage(
        "base of addresses",
        page("u", body, "<base href='https://shop.test/x/'>"),
        ("Parts by base",),
        links=entries() | {"Further parts": f"{SITE}/x/list?page=3"},
    )


LIST_PAGES: tuple[Callable[[], ListPage], ...] = (
    bootstrap_table, bare_table, table_with_link_in_the_head_of_the_document, pager_in_the_foot_of_the_table,
    search_results, product_cards, cards_that_are_links, load_more, button_with_address, form_of_pages,
    definition_list, index_from_a_to_z, news_in_a_layout_table, list_in_a_layout_table, german, japanese,
    language_that_no_word_list_holds, arabic_numbers, blog_index, forum_of_divs, roles_of_a_grid,
    paragraphs_of_links, lines_with_breaks, table_among_prose_of_a_category, table_of_numbers_only,
    base_of_addresses,
)  # fmt: skip
