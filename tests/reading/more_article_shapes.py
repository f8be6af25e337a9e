"""Article pages as content management systems and papers write them, with what each states; written unseen."""

import json

from tests.reading.article_shapes import Shape

_TEXT = (
    "<p>The mill was built in 1862, and it ground corn for three villages until the river was moved in May 1911. It stands empty now, but its wheel still turns when the water is high.</p>"
    * 5
)
_SITE = "https://www.lumo-post.test/"
MORE_SHAPES: list[Shape] = []


def _ld(item: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(item)}</script>'


def _page(head: str, body: str, title: str = "The mill", lang: str = "en") -> str:
    return f'<!doctype html><html lang="{lang}"><head><title>{title}</title>{head}</head><body>{body}</body></html>'


def _add(
    name: str, html: str, published: str, author: str, publisher: str, url: str = _SITE + "story/the-mill"
) -> None:
    MORE_SHAPES.append(Shape(name, url, html, published, author, publisher))


# fmt: off
# JSON-LD
_add("yoast",_page(_ld({"@context":"https://schema.org","@graph":[{"@type":"Article","@id":_SITE + "#article","author":{"name":"Ida Berg","@id":_SITE + "#/p/1"},"datePublished":"2024-02-03T06:00:00+00:00","dateModified":"2024-03-01T00:00:00+00:00","publisher":{"@id":_SITE + "#org"}},{"@type":"WebPage","datePublished":"2024-02-03T06:00:00+00:00"},{"@type":"Organization","@id":_SITE + "#org","name":"Lumo Post"},{"@type":"Person","@id":_SITE + "#/p/1","name":"Ida Berg"}]}),f"<article><h1>The mill</h1>{_TEXT}</article>"),"2024-02-03","Ida Berg","Lumo Post")
_add("ld_list_authors",_page(_ld([{"@type":"BreadcrumbList"},{"@type":["NewsArticle","ReportageNewsArticle"],"datePublished":"2023-11-20T21:30:00-05:00","author":[{"@type":"Person","name":"Ida Berg"},{"@type":"Person","name":"Leo Falk"}],"publisher":{"@type":"NewsMediaOrganization","name":"Lumo Post"}}]),f"<main><h1>The mill</h1>{_TEXT}</main>"),"2023-11-20","Ida Berg, Leo Falk","Lumo Post")
_add("ld_author_string",_page(_ld({"@type":"BlogPosting","datePublished":"2022-7-4","author":"Ida Berg","publisher":"Lumo Post"}),f"<h1>The mill</h1>{_TEXT}"),"2022-07-04","Ida Berg","Lumo Post")
_add("ld_template_wrong",_page(_ld({"@type":"Article","datePublished":"{{ post.date }}","author":{"@type":"Person","name":"{{ post.author }}"},"publisher":{"name":"Lumo Post"}}),f"<article><h1>The mill</h1><p class='meta'>By Ida Berg · <time datetime='2021-05-06'>6 May 2021</time></p>{_TEXT}</article>"),"2021-05-06","Ida Berg","Lumo Post")
_add("ld_epoch",_page(_ld({"@type":"Article","datePublished":"1970-01-01T00:00:00Z","publisher":{"name":"Lumo Post"}}),f"<article><h1>The mill</h1><div class='post-date'>6 May 2021</div>{_TEXT}</article>"),"2021-05-06","","Lumo Post")
_add("ld_zero",_page(_ld({"@type":"Article","datePublished":"0001-01-01T00:00:00Z"})+'<meta property="article:published_time" content="2020-01-09T10:00:00Z">',f"<article><h1>The mill</h1>{_TEXT}</article>"),"2020-01-09","","")
_add("ld_event",_page(_ld({"@type":"Event","name":"Fair","startDate":"2031-06-01"}),f"<article><h1>The mill</h1><p class=byline>Ida Berg, 4 June 2020</p>{_TEXT}</article>"),"2020-06-04","Ida Berg","")
_add("ld_broken",_page('<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2019-09-08T07:00:00Z","author":{"name":"Ida Berg"},"headline":"The "mill"",}</script>',f"<article><h1>The mill</h1><span class=author>Ida Berg</span><time datetime=2019-09-08>8 Sept</time>{_TEXT}</article>"),"2019-09-08","Ida Berg","")
_add("ld_mainentity",_page(_ld({"@type":"WebPage","mainEntity":{"@type":"Article","datePublished":"2018-04-03","author":{"@type":"Organization","name":"Lumo Lab"}}}),f"<h1>The mill</h1>{_TEXT}"),"2018-04-03","Lumo Lab","")
_add("ld_video_related",_page(_ld([{"@type":"VideoObject","uploadDate":"2015-01-01","name":"other clip"},{"@type":"NewsArticle","datePublished":"2023-01-05","author":{"name":"Ida Berg"}}]),f"<article><h1>The mill</h1>{_TEXT}</article>"),"2023-01-05","Ida Berg","")
_add("ld_author_url",_page(_ld({"@type":"Article","datePublished":"2023-01-05","author":{"@type":"Person","name":"Ida Berg","url":"https://x.test/ida"},"isPartOf":{"@type":"WebSite","name":"Lumo Post"}}),f"<article><h1>The mill</h1>{_TEXT}</article>"),"2023-01-05","Ida Berg","Lumo Post")
_add("ld_only_modified",_page(_ld({"@type":"Article","dateModified":"2023-08-05"}),f"<article><h1>The mill</h1><p>First published 2 March 2022. Updated 5 August 2023.</p>{_TEXT}</article>"),"2022-03-02","","")
# meta
_add("og",_page('<meta property="og:site_name" content="Lumo Post"><meta property="article:published_time" content="2021-12-31T23:30:00+01:00"><meta property="article:modified_time" content="2022-02-02"><meta name="author" content="Ida Berg">',f"<h1>The mill</h1>{_TEXT}"),"2021-12-31","Ida Berg","Lumo Post")
_add("dc",_page('<meta name="DC.Date.Issued" content="2017-06-05"><meta name="DC.Creator" content="Berg, Ida"><meta name="DC.Publisher" content="Lumo Institute">',f"<h1>The mill</h1>{_TEXT}"),"2017-06-05","Ida Berg","Lumo Institute")
_add("citation",_page('<meta name="citation_title" content="The mill"><meta name="citation_author" content="Berg, Ida"><meta name="citation_author" content="Falk, Leo"><meta name="citation_publication_date" content="2016/03"><meta name="citation_journal_title" content="Journal of Mills"><meta name="citation_publisher" content="Lumo Press">',f"<h1>The mill</h1>{_TEXT}"),"2016-03","Ida Berg, Leo Falk","Journal of Mills")
_add("parsely",_page('<meta name="parsely-pub-date" content="2020-10-11T12:13:14Z"><meta name="parsely-author" content="Ida Berg"><meta name="application-name" content="Lumo Post">',f"<h1>The mill</h1>{_TEXT}"),"2020-10-11","Ida Berg","Lumo Post")
_add("meta_facebook_author",_page('<meta property="article:author" content="https://www.facebook.com/idaberg"><meta property="article:published_time" content="2020-10-11"><meta name="twitter:data1" content="Ida Berg"><meta name="twitter:label1" content="Written by">',f"<h1>The mill</h1>{_TEXT}"),"2020-10-11","Ida Berg","")
_add("meta_us",_page('<meta name="date" content="03/04/2019">',f"<h1>The mill</h1>{_TEXT}",lang="en-US"),"2019-03-04","","")
_add("meta_http_equiv",_page('<meta http-equiv="last-modified" content="2023-05-05"><meta name="pubdate" content="20190304">',f"<h1>The mill</h1>{_TEXT}"),"2019-03-04","","")
_add("meta_rfc",_page('<meta name="publish-date" content="Mon, 04 Mar 2019 08:00:00 GMT"><meta property="og:site_name" content="Lumo Post">',f"<h1>The mill</h1>{_TEXT}"),"2019-03-04","","Lumo Post")
# microdata, RDFa, microformats
_add("microdata",_page("",f'<article itemscope itemtype="https://schema.org/Article"><h1 itemprop=headline>The mill</h1><span itemprop=author itemscope><a itemprop=url href=/ida><span itemprop=name>Ida Berg</span></a></span><meta itemprop=datePublished content="2015-02-03"><span itemprop=publisher itemscope><meta itemprop=name content="Lumo Post"></span>{_TEXT}</article>'),"2015-02-03","Ida Berg","Lumo Post")
_add("rdfa_drupal",_page("",f'<div class=node typeof="sioc:Item"><h1>The mill</h1><span property="dc:date dc:created" content="2013-07-08T10:00:00+02:00" datatype="xsd:dateTime">Submitted by <a rel="sioc:has_creator" class=username>Ida Berg</a> on Mon, 07/08/2013</span>{_TEXT}</div>'),"2013-07-08","Ida Berg","")
_add("rdfa_schema",_page("",f'<div vocab="https://schema.org/" typeof="NewsArticle"><h1 property=headline>The mill</h1><span property=author typeof=Person><span property=name>Ida Berg</span></span><time property=datePublished datetime="2014-04-05">5 April</time>{_TEXT}</div>'),"2014-04-05","Ida Berg","")
_add("hatom",_page("",f'<div class="hentry"><h1 class=entry-title>The mill</h1><abbr class="published" title="2011-03-04T00:00:00Z">Friday</abbr> <span class="author vcard"><a class="url fn n" href=/ida>Ida Berg</a></span><div class=entry-content>{_TEXT}</div></div>'),"2011-03-04","Ida Berg","")
_add("hentry2",_page("",f'<article class=h-entry><h1 class=p-name>The mill</h1><a class="p-author h-card" href=/>Ida Berg</a> <time class=dt-published datetime="2019-08-07 06:05">7 Aug 2019</time><time class=dt-updated datetime="2020-01-01">1 Jan 2020</time><div class=e-content>{_TEXT}</div></article>'),"2019-08-07","Ida Berg","")
# themes
_add("wordpress",_page("",f'<article class="post"><header class=entry-header><h1>The mill</h1><div class=entry-meta><span class=posted-on>Posted on <a href=/d><time class="entry-date published" datetime="2018-09-10T11:12:13+00:00">September 10, 2018</time><time class="updated" datetime="2021-01-01">January 1, 2021</time></a></span><span class=byline> by <span class="author vcard"><a href=/author/ida>Ida Berg</a></span></span></div></header>{_TEXT}</article>',"The mill – Lumo Post"),"2018-09-10","Ida Berg","Lumo Post")
_add("ghost",_page('<meta property="og:site_name" content="Lumo Post">',f'<article><h1>The mill</h1><section class="article-byline-content"><h4 class=author-name><a href=/author/ida/>Ida Berg</a></h4><div class=byline-meta-content><time class=byline-meta-date datetime=2022-10-11>Oct 11, 2022</time><span class=byline-reading-time>• 4 min read</span></div></section>{_TEXT}</article>'),"2022-10-11","Ida Berg","Lumo Post")
_add("jekyll",_page("",f'<article><header class=post-header><h1>The mill</h1><p class=post-meta><time class=dt-published datetime="2017-02-01T00:00:00+00:00">Feb 1, 2017</time> • <span itemprop=author itemscope><span class="p-author h-card" itemprop=name>Ida Berg</span></span></p></header>{_TEXT}</article>'),"2017-02-01","Ida Berg","")
_add("hugo",_page("",f'<main><article><h1>The mill</h1><div class="post-info">February 1, 2017 | Ida Berg</div>{_TEXT}</article></main>'),"2017-02-01","Ida Berg","")
_add("blogger",_page("",f'<div class=date-outer><h2 class=date-header><span>Sunday, February 5, 2012</span></h2><div class=post><h3 class=post-title>The mill</h3><div class=post-body>{_TEXT}</div><div class=post-footer><span class=post-author>Posted by <span class=fn>Ida Berg</span></span> at <abbr class=published title="2012-02-05T09:00:00Z">9:00 AM</abbr></div></div></div>'),"2012-02-05","Ida Berg","")
_add("joomla",_page("",f'<div class=item-page><h1>The mill</h1><dl class=article-info><dt>Details</dt><dd class=createdby>Written by: <span>Ida Berg</span></dd><dd class=published>Published: <time datetime="2016-05-04T08:00:00+02:00">04 May 2016</time></dd><dd class=modified>Last Updated: <time datetime="2019-01-01">01 January 2019</time></dd></dl>{_TEXT}</div>'),"2016-05-04","Ida Berg","")
_add("medium",_page('<meta property="og:site_name" content="Medium"><meta name="author" content="Ida Berg"><meta property="article:published_time" content="2020-03-04T05:06:07.000Z">',f"<article><h1>The mill</h1>{_TEXT}</article>","The mill | by Ida Berg | Medium"),"2020-03-04","Ida Berg","Medium")
_add("substack",_page("",f'<article><h1>The mill</h1><h3 class=subtitle>On water</h3><div class=byline-wrapper><a class=author href=/@ida>Ida Berg</a><div class="meta-text">Mar 04, 2023</div></div>{_TEXT}</article>'),"2023-03-04","Ida Berg","")
_add("typo3",_page("",f'<div class="news-single"><div class=article><h1>Die Mühle</h1><div class="news-list-date">04.03.2020</div><div class=news-author>von Ida Berg</div>{_TEXT}</div></div>',lang="de"),"2020-03-04","Ida Berg","")
_add("govuk",_page("",f'<main><h1>The mill</h1><dl class=metadata><dt>From:</dt><dd><a href=/org>Department of Mills</a></dd><dt>Published</dt><dd>4 March 2020</dd><dt>Last updated</dt><dd>5 May 2021</dd></dl>{_TEXT}</main>',"The mill - GOV.UK"),"2020-03-04","","GOV.UK","https://www.gov.uk/guidance/the-mill")
_add("press",_page("",f'<main><h1>The mill</h1><p><strong>OULU, Finland, March 4, 2020</strong> – Lumo opens the mill.</p>{_TEXT}</main>'),"2020-03-04","","")
_add("plain",_page("",f'<h1>The mill</h1><p><i>Ida Berg, March 2020</i></p>{_TEXT}'),"2020-03","Ida Berg","")
_add("url_only",_page("",f'<h1>The mill</h1>{_TEXT}<footer>© 2025 Lumo</footer>'),"2020-03-04","","",_SITE + "2020/03/04/mill.html")
_add("copyright_only",_page("",f'<h1>The mill</h1>{_TEXT}<footer><p>Copyright © 2010-2025 Lumo Post. All rights reserved.</p></footer>'),"","","")
_add("future_event_text",_page("",f'<article><h1>The mill</h1><p class=byline>By Ida Berg | 4 March 2020</p><aside class=event>Open day: 9 May 2031</aside>{_TEXT}</article>'),"2020-03-04","Ida Berg","")
_add("comments",_page("",f'<article><h1>The mill</h1><div class=date>4 March 2020</div>{_TEXT}</article><div id=comments><div class=comment><span class=author>Troll</span><time datetime=2020-03-09>9 March</time></div></div>'),"2020-03-04","","")
_add("related",_page("",f'<aside class=related><a><time datetime=2024-01-01>1 Jan 2024</time></a></aside><article><h1>The mill</h1><time datetime=2020-03-04>4 March</time>{_TEXT}</article>'),"2020-03-04","","")
_add("updated_first",_page("",f'<article><h1>The mill</h1><p>Updated: 9 June 2021 10:00 | Published: 4 March 2020 08:00</p>{_TEXT}</article>'),"2020-03-04","","")
_add("header_today",_page("",f'<header><span class=today>Saturday, 28 November 2026</span></header><article><h1>The mill</h1><p class=info>4 March 2020</p>{_TEXT}</article>'),"2020-03-04","","")
# languages
_add("de",_page("",f'<article><h1>Die Mühle</h1><p>Von Ida Berg, 4. März 2020, 8:00 Uhr</p>{_TEXT}</article>',lang="de"),"2020-03-04","Ida Berg","")
_add("fr",_page("",f"<article><h1>Le moulin</h1><span class=meta__author>Par Ida Berg</span><span class=meta__date>Publié le 4 mars 2020 à 8h00, modifié le 5 mai 2021 à 9h00</span>{_TEXT}</article>",lang="fr"),"2020-03-04","Ida Berg","")
_add("es",_page("",f"<article><h1>El molino</h1><div class=firma>Ida Berg</div><div>Oulu - 04 mar 2020 - 08:00 CET</div>{_TEXT}</article>",lang="es"),"2020-03-04","Ida Berg","")
_add("it",_page("",f"<article><h1>Il mulino</h1><p>di <strong>Ida Berg</strong></p><p>4 marzo 2020</p>{_TEXT}</article>",lang="it"),"2020-03-04","Ida Berg","")
_add("pt",_page("",f'<article><h1>O moinho</h1><p class=autor>Por Ida Berg</p><p class=data>04/03/2020 às 08h00</p>{_TEXT}</article>',lang="pt-BR"),"2020-03-04","Ida Berg","")
_add("pl",_page("",f"<article><h1>Młyn</h1><span class=autor>Ida Berg</span> <span class=data>4 marca 2020, 8:00</span>{_TEXT}</article>",lang="pl"),"2020-03-04","Ida Berg","")
_add("ru",_page("",f"<article><h1>Мельница</h1><div class=date>4 марта 2020, 08:00</div><div>Автор: Ида Берг</div>{_TEXT}</article>",lang="ru"),"2020-03-04","Ида Берг","")
_add("nl",_page("",f"<article><h1>De molen</h1><p>Door Ida Berg op 4 maart 2020</p>{_TEXT}</article>",lang="nl"),"2020-03-04","Ida Berg","")
_add("sv",_page("",f"<article><h1>Kvarnen</h1><p class=byline>Av Ida Berg</p><p>Publicerad 4 mars 2020</p>{_TEXT}</article>",lang="sv"),"2020-03-04","Ida Berg","")
_add("fi",_page("",f"<article><h1>Mylly</h1><p class=byline>Ida Berg</p><p>Julkaistu 4.3.2020</p>{_TEXT}</article>",lang="fi"),"2020-03-04","Ida Berg","")
_add("cs",_page("",f"<article><h1>Mlýn</h1><p>4. března 2020</p><p>Autor: Ida Berg</p>{_TEXT}</article>",lang="cs"),"2020-03-04","Ida Berg","")
_add("tr",_page("",f"<article><h1>Değirmen</h1><div class=tarih>4 Mart 2020 08:00</div><div class=yazar>Ida Berg</div>{_TEXT}</article>",lang="tr"),"2020-03-04","Ida Berg","")
_add("zh",_page("",f"<article><h1>磨坊</h1><div class=info>2020年03月04日 08:00　来源：露默日报　作者：王小明</div>{_TEXT}</article>",lang="zh"),"2020-03-04","王小明","露默日报")
_add("ja",_page("",f"<article><h1>水車小屋</h1><p class=date>2020年3月4日 8時00分</p><p>文：山田花子</p>{_TEXT}</article>",lang="ja"),"2020-03-04","山田花子","")
_add("ko",_page("",f"<article><h1>방앗간</h1><span>입력 2020.03.04. 오전 8:00</span><span>수정 2020.05.05. 오전 9:00</span><span class=byline>김하나 기자</span>{_TEXT}</article>",lang="ko"),"2020-03-04","김하나","")
_add("ar",_page("",f"<article><h1>الطاحونة</h1><div class=date>4 مارس 2020</div><div class=author>إيدا برغ</div>{_TEXT}</article>",lang="ar"),"2020-03-04","إيدا برغ","")
_add("hi",_page("",f"<article><h1>चक्की</h1><p class=date>4 मार्च 2020</p>{_TEXT}</article>",lang="hi"),"2020-03-04","","")
_add("dl_copyright_pub",_page('<meta name="copyright" content="© 2024 Lumo Post">',f'<article><h1>The mill</h1><time datetime=2020-03-04>x</time>{_TEXT}</article>'),"2020-03-04","","Lumo Post")
# The second set.
_add("bbc",_page(_ld({"@context":"http://schema.org","@type":"ReportageNewsArticle","datePublished":"2021-02-03T04:05:06.000Z","dateModified":"2021-02-04","author":[{"@type":"NewsMediaOrganization","name":"Lumo News"}],"publisher":{"@type":"NewsMediaOrganization","name":"Lumo News"}}),f"<main><h1>The mill</h1><div><time datetime='2021-02-03T04:05:06.000Z'>3 February 2021</time></div>{_TEXT}</main>"),"2021-02-03","Lumo News","Lumo News")
_add("nyt",_page('<meta name="byl" content="By Ida Berg and Leo Falk"><meta property="article:published_time" content="2022-05-06T09:00:00.000Z"><meta name="pdate" content="20220506">',f"<h1>The mill</h1>{_TEXT}"),"2022-05-06","Ida Berg and Leo Falk","")
_add("drupal9",_page('<meta name="Generator" content="Drupal 9">',f'<article><h1>The mill</h1><footer class="node__meta"><div class="node__submitted">Submitted by <span class=username>Ida Berg</span> on <span>Wed, 05/06/2020 - 09:10</span></div></footer><div class=node__content>{_TEXT}</div></article>'),"2020-05-06","Ida Berg","")
_add("squarespace",_page('<meta property="og:site_name" content="Lumo Post"><meta itemprop="datePublished" content="2019-10-09T08:07:06-0400"><meta itemprop="author" content="Ida Berg">',f"<article><h1>The mill</h1>{_TEXT}</article>"),"2019-10-09","Ida Berg","Lumo Post")
_add("wix",_page(_ld({"@type":"BlogPosting","datePublished":"2020-08-09T10:11:12.131Z","author":{"@type":"Person","name":"Ida Berg"},"publisher":{"@type":"Organization","name":"Lumo"}}),f"<h1>The mill</h1>{_TEXT}"),"2020-08-09","Ida Berg","Lumo")
_add("devto",_page("",f'<article><header><div class="crayons-article__subheader"><a class="crayons-link fw-bold" href=/ida>Ida Berg</a><p class="fs-xs">Posted on <time datetime="2021-09-08T07:06:05Z">Sep 8 \'21</time> • Updated on <time datetime="2022-01-01">Jan 1</time></p></div><h1>The mill</h1></header>{_TEXT}</article>'),"2021-09-08","","")
_add("lwn",_page("",f'<h1>The mill</h1><div class=FeatureByline>By <b>Ida Berg</b><br>May 6, 2020</div>{_TEXT}'),"2020-05-06","Ida Berg","")
_add("wiki",_page('<meta name="generator" content="MediaWiki 1.39">',f'<h1>The mill</h1><div id=mw-content-text>{_TEXT}</div><footer><ul><li id=footer-info-lastmod>This page was last edited on 5 May 2024, at 10:00.</li></ul></footer>',"The mill - Wikipedia"),"","","Wikipedia","https://en.wikipedia.org/wiki/The_mill")
_add("guv_de",_page("",f'<main><h1>Die Mühle</h1><p class=datum>Stand: 06.05.2020</p>{_TEXT}</main>',lang="de"),"2020-05-06","","")
_add("spiegel",_page('<meta name="date" content="2020-05-06T07:08:09+02:00"><meta name="author" content="Ida Berg, LUMO"><meta property="og:site_name" content="LUMO">',f"<h1>Die Mühle</h1>{_TEXT}",lang="de"),"2020-05-06","Ida Berg, LUMO","LUMO")
_add("hu",_page("",f"<article><h1>A malom</h1><p>Berg Ida</p><p>2020. május 6. 08:00</p>{_TEXT}</article>",lang="hu"),"2020-05-06","","")
_add("vi",_page("",f"<article><h1>Cối xay</h1><span class=date>Thứ tư, 6/5/2020, 08:00 (GMT+7)</span>{_TEXT}</article>",lang="vi"),"2020-05-06","","")
_add("el",_page("",f"<article><h1>Ο μύλος</h1><p>Δημοσιεύτηκε 6 Μαΐου 2020</p><p>Συντάκτης: Ίντα Μπεργκ</p>{_TEXT}</article>",lang="el"),"2020-05-06","Ίντα Μπεργκ","")
_add("uk",_page("",f"<article><h1>Млин</h1><div>6 травня 2020, 08:00</div><div>Оновлено 9 червня 2021</div>{_TEXT}</article>",lang="uk"),"2020-05-06","","")
_add("he",_page("",f"<article><h1>הטחנה</h1><p class=date>6 במאי 2020</p>{_TEXT}</article>",lang="he"),"2020-05-06","","")
_add("id",_page("",f"<article><h1>Kincir</h1><div class=read__author>Penulis: Ida Berg</div><div class=read__time>Rabu, 06 Mei 2020 | 08:00 WIB</div>{_TEXT}</article>",lang="id"),"2020-05-06","Ida Berg","")
_add("uk_slash",_page("",f"<article><h1>The mill</h1><p class=date>06/05/2020</p>{_TEXT}</article>",lang="en-GB"),"2020-05-06","","")
_add("history",_page("",f"<article><h1>The mill of 1911</h1><p>The fire began on 6 May 1911 in the loft.</p>{_TEXT}</article>"),"","","")
_add("future_meta",_page('<meta name="date" content="2099-01-01">',f"<article><h1>The mill</h1><time datetime=2020-05-06>6 May</time>{_TEXT}</article>"),"2020-05-06","","")
_add("place",_page("",f'<article><h1>The mill</h1><div class=article-meta>New York | 6 May 2020</div>{_TEXT}</article>'),"2020-05-06","","")
# fmt: on
