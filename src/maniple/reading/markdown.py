"""From HTML elements to Markdown."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import Tag
    from lxml.html import HtmlElement

_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s*([\w+#.-]{1,30})")


def to_markdown(part: "HtmlElement") -> str:
    """`part` as Markdown: headings with `#`, lists with `-`, tables and fenced code kept."""
    from lxml import html
    from markdownify import markdownify

    try:
        markdown = markdownify(
            str(html.tostring(part, encoding="unicode", with_tail=False)),
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            code_language_callback=_code_language,
            bs4_options="lxml",
        )
    except RecursionError:
        # Nested far beyond what any real page is; its text is still worth reading.
        markdown = "\n\n".join(str(text).strip() for text in part.itertext() if text.strip())
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", markdown)).strip()


def _code_language(element: "Tag") -> str:
    for tag in (element, *element("code")):
        if match := _LANGUAGE.search(" ".join(tag.get("class") or ())):
            return match[1]
    return ""
