"""From HTML elements to Markdown of a bounded length."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import Tag
    from lxml.html import HtmlElement


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


def cut(markdown: str, max_characters: int, total: int = 0) -> str:
    """`markdown` up to the last heading or paragraph that fits, with a notice of what is missing.

    `total` is the length of the whole text where `markdown` is only its beginning.
    """
    total = max(total, len(markdown))
    if total <= max_characters:
        return markdown
    kept = markdown[:max_characters]
    if len(markdown) > max_characters:
        ends = (kept.rfind("\n#"), kept.rfind("\n\n"), kept.rfind("\n"))
        kept = kept[: next((end for end in ends if end > max_characters // 2), max_characters)].rstrip()
    if kept.count("```") % 2:
        kept += "\n```"
    return f"{kept}\n\n[Cut: these are the first {len(kept):,} of about {total:,} characters.]"


def _code_language(element: "Tag") -> str:
    names = [str(name) for tag in (element, *element("code")) for name in tag.get("class") or ()]
    return next((name.removeprefix("language-") for name in names if name.startswith("language-")), "")
