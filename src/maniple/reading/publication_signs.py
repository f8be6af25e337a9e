"""The names of metadata, the classes and the words by which pages say who published them, and when."""

import re

ARTICLE_TYPES = re.compile(
    r"(?:\w*Article|\w*Posting|Report|Review|Book|ScholarlyWork|Dataset|TechArticle|CreativeWork|VideoObject)$"
)
TEXT_TYPES = re.compile(r"(?:\w*Article|\w*Posting|Report|ScholarlyWork)$")
TEMPLATE = re.compile(r"\{\{|\}\}|\$\{|<%|%>|\[\[|%\w+%|^\s*(?:undefined|null|NaN)\s*$")
"""Marks of a template that was not filled in."""
NO_DATES = ("1970-01-01", "1900-01-01", "1969-12-31")
"""What systems write that know no date."""
WRITTEN_BY = re.compile(
    r"(?:written by|author|(?:geschrieben|verfasst) von|autor|écrit par|auteur|escrito por|scritto da|autore|"
    r"geschreven door|skriven av|skrevet af|napisane przez|автор|yazar|作者|著者|글쓴이)\b",
    re.I,
)
UPDATED_LABEL = re.compile(
    r"updated?|modified|revised|edited|modifié|mis à jour|aktualisiert|geändert|bearbeitet|actualizad|modificad|aggiornat|"
    r"atualizad|bijgewerkt|gewijzigd|uppdaterad|oppdatert|opdateret|päivitetty|muokattu|zaktualizowan|aktualizac|"
    r"aktualizováno|upraveno|frissítve|módosít|actualizat|обновлен|изменен|оновлен|ενημέρωση|güncelle|diperbarui|cập nhật|"
    r"تحديث|עודכן|अपडेट|更新|수정|修改"
)
PUBLISHED_LABEL = re.compile(
    r"publish|posted|issued|released|publié|parution|mis en ligne|veröffentlicht|erschienen|erstellt|publicad|creado|pubblicat|"
    r"gepubliceerd|geplaatst|publicerad|publisert|publiceret|offentliggjort|julkaistu|opublikowan|dodano|zveřejněno|vydáno|"
    r"publikov|megjelen|közzétéve|publicat|опубликован|опубліковано|δημοσ|yayın|eklenme|diterbitkan|ngày đăng|نشر|פורסם|"
    r"प्रकाशित|发布|发表|發佈|公開|掲載|配信|입력|등록|submitted"
)
PAGE_TYPES = re.compile(r"(?:\w*WebPage|WebSite|ItemPage|AboutPage|QAPage|ProfilePage)$")
DATE_FIELDS = ("datePublished", "dateCreated", "uploadDate", "pubDate")
DATE_NAMES = (
    "article:published_time", "citation_publication_date", "citation_online_date", "citation_date", "og:article:published_time",
    "article:published", "datepublished", "parsely-pub-date", "sailthru.date", "pubdate", "publishdate", "publish-date",
    "publish_date", "publication_date", "publicationdate", "publication-date", "published_time", "published", "displaydate",
    "originalpublicationdate", "article_date_original", "bt:pubdate", "cxenseparse:recs:publishtime", "cxenseparse:publishtime",
    "prism.publicationdate", "bepress_citation_date", "dcterms.issued", "dc.date.issued", "dcterms.created", "dc.date.created",
    "dcterms.date", "dc.date", "dc:date", "dcterms.available", "dc.date.publication", "eprints.date", "weibo:article:create_at", "article.published",
    "og:published_time", "og:release_date", "release_date", "create_date", "apub:time", "date", "date.issued", "firstpublishtime",
    "dcsext.articlefirstpublished", "created", "dc.created", "rnews:datepublished", "shareaholic:article_published_time",
)  # fmt: skip
AUTHOR_NAMES = (
    "citation_author", "citation_authors", "bepress_citation_author", "author", "article:author", "og:article:author", "parsely-author",
    "sailthru.author", "byl", "dc.creator", "dcterms.creator", "dc:creator", "dc.contributor.author", "authors", "article:author_name", "cxenseparse:author",
    "weibo:article:author", "rnews:author", "mediator_author", "article.author", "shareaholic:article_author_name", "byline",
)  # fmt: skip
PUBLISHER_NAMES = (
    "citation_journal_title", "citation_conference_title", "og:site_name", "dc.publisher", "dcterms.publisher", "dc:publisher", "publisher",
    "article:publisher_name", "mediaid", "source", "citation_publisher", "application-name", "apple-mobile-web-app-title", "twitter:app:name:iphone",
    "dc.source", "copyright",
)  # fmt: skip
DATE_CLASS = re.compile(
    r"publish|pubdate|pub[-_]?time|pub[-_]?date|entry-date|post-date|(?:^|[\s_-])(?:datum|tarih|tanggal|дата)(?:$|[\s_-])|posted|dateline|date|(?:^|[\s_-])time(?:$|[\s_-])|datetime|timestamp|released|erschienen|fecha"
)
BYLINE_CLASS = re.compile(
    rf"{DATE_CLASS.pattern}|byline|author|meta\b|meta[-_]|[-_]meta|article[-_]?info|art_info|info[-_]?bar|source"
    r"|credit|submitted|kicker|signature|writer|reporter|post-info|head-info"
)
AUTHOR_CLASS = re.compile(
    r"byline|author|writer|reporter|contributor|(?:^|[\s_-])(?:autor|auteur|autore|firma|yazar|verfasser|username|forfatter|kirjoittaja|penulis)(?:$|[\s_-])"
)
ROLE = re.compile(
    r",\s+(?:[^,]*\b(?:of|for|at|the|correspondent|editor|reporter|staff|writer|office|university|redakt\w+)\b.*)$",
    re.I,
)
NOT_OF_PAGE = re.compile(
    r"comment|related|recommend|sidebar|aside|(?<!post-)(?<!entry-)(?<!article-)footer|teaser|popular|most-?read|more-|promo|(?<!v)(?<!h-)card|listing|widget|updated|modified|copyright|next|prev|trending|carousel|reply|event"
)
LOOKED_AT = 6_000
MAX_SCRIPTS = 20
MAX_ITEMS = 300
BYLINE_CHARACTERS = 200
VALUE_CHARACTERS = 200
MAX_AUTHORS = 5
MAX_CANDIDATES = 10
LABELLED = re.compile(
    r"(?:\b(?:published|posted|updated|publié|publiée|veröffentlicht|erschienen|publicado|pubblicato|date|datum|stand|issued|released|first published|gepubliceerd)\b|发布|发表|公開|掲載|配信|日期|时间|時間|入力)"
)
BY = re.compile(
    r"^\s*(?:(?:written|submitted|posted|published|reported|words|story|text|article|a(?:rtículo)?|publié|écrit|veröffentlicht|escrito|rédigé)\s+)?(?:by|von|par|por|di|door|av|af|przez|oleh|от|від|autor(?:a|in)?|author|auteur|autore)\s*[:：]?\s+",
    re.I,
)
AUTHOR_LABEL = re.compile(
    r"(?:作者|记者|文|撰文|記者|執筆(?:者)?|取材・文|文責|ライター|通讯员|Автор|Συντάκτης|Szerző|Yazar|Tác giả|Penulis|Skribent|Författare|Kirjoittaja|الكاتب|כתב|लेखक|글|Author|Autor(?:in)?|Auteur|Reporter)\s*[:：/／]\s*([^\s|｜:：,，。/／()（）\d【】\[\]]{2,20}(?:[ 、,，][^\s|｜:：,，。/／()（）\d【】\[\]]{2,20}){0,3})"
)
SOURCE_LABEL = re.compile(
    r"(?:来源|來源|稿源|出处|信息来源|配信元|提供元|出典)\s*[:：]\s*([^\s|｜:：,，。()（）]{2,30})"
)
NAME_END = re.compile(
    r"\s*(?:[|｜•·–—]|\s-\s|,?\s*\b(?:published|updated|posted|on|op|den|dne|am|le|el|il|in|for|and is|is a|of the|senior|staff|chief|editor|correspondent|reporter|\d)|\d|\n|@|\()",
    re.I,
)
ADDRESS = re.compile(r"https?://|www\.|@")
NO_NAME = re.compile(
    r"^(?:admin|administrator|editor|editorial|staff|webmaster|unknown|anonymous|user|root|none|null|guest|author|by|n/a)$",
    re.I,
)
SITE_PARTS = re.compile(r"\s+[-–—|·•:»]\s+|\s*[|｜•»_＿]\s*")
SMALL_WORDS = re.compile(r"[\W_]+|\b(?:the|der|die|das|le|la|el|il|www|news|online|com)\b")
