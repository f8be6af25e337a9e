"""Signs in the structure of a page, in any language, that it stands in the place of another page.

Each needs a page with hardly any prose; a page with a paragraph of content is never judged by its structure.
"""

import re
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from maniple.reading.wall_phrases import ObstacleKind

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_FEW_CHARACTERS = 120
"""Of prose outside of labels and headings; an ideograph counts as three."""
_SOME_CHARACTERS = 250
"""The limit for pages that search engines shall not list."""
_TEASER_CHARACTERS = 700
_FEW_LABELS = 60
_MAX_ELEMENTS = 20_000
_MAX_FIELDS = 50
_MAX_REFRESH_SECONDS = 15
_NUMBER = r"(?P<status>40[0134569]|410|418|429|451|50[0-4]|52\d)"
_ERROR = (
    r"(?:http|error|status|code|fehler|erreur|errore?|erro|fout|fejl|feil|fel|virhe|viga|villa|klaida|kļūda|chyba|błąd|"
    r"hiba|eroare|greška|napaka|грешка|ошибка|помилка|памылка|қате|σφάλμα|hata|xəta|خطأ|خطا|שגיאה|त्रुटि|ত্রুটি|"
    r"ข้อผิดพลาด|lỗi|kesalahan|ralat|kosa|hitilafu|错误|錯誤|エラー|오류)"
)
_STATUS = re.compile(
    rf"[\s.:!#()\[\]–—-]*(?:{_ERROR}[\s:#-]{{0,3}}){{0,2}}{_NUMBER}(?:\s*[|:.!()\[\]–—·-]+.*)?",
    re.DOTALL | re.IGNORECASE,
)
_TITLE_PARTS = re.compile(r"\s+[-–—|·•]\s+|\s*[|·•]\s*")
_SIGN_IN_HOSTS = re.compile(
    r"//(?:accounts\.google\.com|appleid\.apple\.com/auth|login\.microsoftonline\.com|login\.live\.com"
    r"|github\.com/login/oauth|(?:www|m)\.facebook\.com/(?:v[\d.]+/)?dialog/oauth|api\.twitter\.com/oauth"
    r"|(?:www\.)?linkedin\.com/oauth|kauth\.kakao\.com|nid\.naver\.com/oauth|open\.weixin\.qq\.com/connect"
    r"|oauth\.vk\.com|oauth\.yandex\.|access\.line\.me/oauth)|/oauth2?/(?:v\d/)?auth|/saml2?/|[?&]SAMLRequest="
    r"|response_type=code&",
    re.IGNORECASE,
)
_CHALLENGE = re.compile(
    r"(?:^|\s)(?:cf-turnstile|h-captcha|g-recaptcha|frc-captcha|smart-captcha|mtcaptcha|altcha|geetest_\w+"
    r"|tencent-captcha|yidun\w*|nc-container|amzn-captcha\w*|arkose\w*|px-captcha\w*|procaptcha)(?:\s|$)"
)
_ASIDE_TAGS = {"header", "nav", "aside", "footer", "dialog"}
_ASIDE_NAMES = re.compile(
    r"side-?bar|aside|widget|comment|header|footer|top-?bar|nav|menu|modal|pop-?up|drop-?down|newsletter|reply"
)
_OPEN_FIELDS = {"text", "email", "tel", "url", "search", "password", "number", "date", "file"}
_REFRESH = re.compile(r"\s*(\d{1,6})[\d.]*\s*(?:[;,]\s*(?:url\s*=)?\s*[\"']?([^\"']*))?", re.IGNORECASE)
_NOT_FREE = re.compile(r"isaccessibleforfree[\"']?\s*[:=]\s*[\"']?(?:https?://schema\.org/)?false")


def find_structural_obstacle(
    page: "HtmlElement", title: str, headings: tuple[str, ...], prose: int, labels: int
) -> ObstacleKind | None:
    """Return what a page stands for by its structure; None if that shows nothing. Linear.

    `prose` and `labels` are the characters of its text outside and inside of links and buttons.
    """
    if prose >= _TEASER_CHARACTERS:
        return None
    if _is_not_free(page):
        return "paywall"
    few = _SOME_CHARACTERS if _is_unlisted(page) else _FEW_CHARACTERS
    if prose >= few:
        return None
    if status := _find_status(title, headings):
        return "not found" if status in ("404", "410") else "error page"
    if _has_sign_in(page):
        return "login wall"
    if _has_challenge(page) or (labels < _FEW_LABELS and _refreshes_itself(page)):
        return "bot check"
    return "empty shell" if prose + labels == 0 and not headings and _has_only_noscript(page) else None


def _is_not_free(page: "HtmlElement") -> bool:
    scripts = page.xpath("(//script[@type='application/ld+json'])[position() <= 10]")
    if any(_NOT_FREE.search((one.text or "")[:100_000].lower()) for one in scripts):
        return True
    values = page.xpath("(//*[@itemprop='isAccessibleForFree'])[position() <= 3]/@content")
    return any(one.strip().lower().endswith("false") for one in values)


def _is_unlisted(page: "HtmlElement") -> bool:
    names = "translate(@name, 'ROBTS', 'robts')='robots'"
    return any("noindex" in one.lower() for one in page.xpath(f"//meta[{names}]/@content")[:5])


def _find_status(title: str, headings: tuple[str, ...]) -> str:
    """Return the HTTP status of which the title or a heading consists, or with which it begins; else ""."""
    parts = [part.strip() for part in (*_TITLE_PARTS.split(title), *headings)]
    return next((match["status"] for part in parts if (match := _STATUS.fullmatch(part))), "")


def _has_sign_in(page: "HtmlElement") -> bool:
    """Whether a form or button to sign in follows the heading, and is no part of a frame around the page."""
    is_headed = page.find(".//h1") is not None
    was_headed = False
    for element in islice(page.iter("h1", "input", "a", "button", "form"), _MAX_ELEMENTS):
        if element.tag == "h1":
            was_headed = True
        elif (was_headed or not is_headed) and _signs_in(element) and not _is_aside(element):
            return True
    return False


def _signs_in(element: "HtmlElement") -> bool:
    if element.tag == "input":
        return element.get("type", "").lower() == "password"
    target = (
        element.get("href") or element.get("action") or element.get("formaction") or element.get("data-href")
    )
    return bool(target and _SIGN_IN_HOSTS.search(target[:500]))


def _is_aside(element: "HtmlElement") -> bool:
    return any(
        one.tag in _ASIDE_TAGS
        or "hidden" in one.attrib
        or (one.tag not in ("body", "html") and _ASIDE_NAMES.search(_name(one)))
        for one in (element, *islice(element.iterancestors(), 12))
    )


def _name(element: "HtmlElement") -> str:
    return f"{element.get('class', '')[:300]} {element.get('id', '')[:300]}".lower()


def _has_challenge(page: "HtmlElement") -> bool:
    """Whether a visible task against robots is all that can be filled in."""
    fields = page.xpath(f"(//input|//textarea)[position() <= {_MAX_FIELDS}]")
    if any(one.tag == "textarea" or one.get("type", "text").lower() in _OPEN_FIELDS for one in fields):
        return False
    tasks = page.xpath(f"(//div[@class or @id]|//span[@class])[position() <= {_MAX_ELEMENTS}]")
    return any(
        one.get("data-size") != "invisible" and _CHALLENGE.search(_name(one)) and not _is_aside(one)
        for one in tasks
    )


def _refreshes_itself(page: "HtmlElement") -> bool:
    kind = "translate(normalize-space(@http-equiv), 'REFSH', 'refsh')"
    for meta in page.xpath(f"//meta[{kind}='refresh'][not(ancestor::noscript)]")[:1]:
        match = _REFRESH.match(meta.get("content", "")[:2_000])
        if match is None or int(match[1]) > _MAX_REFRESH_SECONDS or page.find(".//table") is not None:
            return False
        target = (match[2] or "").strip()
        canonical = page.xpath("string(//link[@rel='canonical']/@href)")
        return (
            not target
            or target.startswith(("?", "#"))
            or urldefrag(urljoin(canonical, target))[0] == canonical
        )
    return False


def _has_only_noscript(page: "HtmlElement") -> bool:
    texts = ("".join(one.itertext()).strip() for one in page.xpath("(//noscript)[position() <= 5]"))
    return page.find(".//script") is not None and any(texts)
