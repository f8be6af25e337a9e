"""Detection of the links of a list to its other pages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# A list that links to more pages than this names the neighbours first.
_MAX_LINKS = 40
_MAX_LABEL = 40
# A longer text around page numbers is prose with notes, not a pager.
_MAX_PAGER_CHARACTERS = 400
# A word such as "more" that leads to more addresses than this belongs to the entries of a list.
_MAX_SAME_LABEL = 2
# A link of a pager is at most so many elements below the pager.
_MAX_WRAPPERS = 4
_MAX_ANCESTORS = 30
_MAX_CHILDREN = 60
_FIRST_PAGES = 3
_MAX_PATH = 500

_CANDIDATES = "//a|//link[@rel][@href]|//button|//input[@type='submit' or @type='button']"
_RELATIONS = {"next": "Next", "prev": "Previous", "previous": "Previous"}
_ADDRESSES = ("href", "formaction", "hx-get", "data-href", "data-url", "data-next-url", "data-next-page-url")
_PAGER = re.compile(
    r"pagin|pager|paging|page[-_]?(?:nav|num|list|link)|(?:^|[\s_-])pages(?:$|[\s_-])|load[-_]?more|blaetter"
)
_ARROWS = frozenset("‹›«»←→⟵⟶⇐⇒<>◀▶◄►❮❯⟨⟩〈〉＜＞")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = re.compile(r"[\s\[(]*(\d{1,4})[\s\]).]*")

# Only evidence beside `rel`, names and page numbers: a list in any other language has those.
_WORD_LIST = """
next previous prev older newer more first last load
weiter weitere nächste nächster vorherige vorige zurück ältere neuere mehr erste letzte laden
suivant suivante suivants précédent précédente plus dernière première charger
siguiente siguientes anterior anteriores más cargar última primera
próxima próximo próximas seguinte seguintes mais carregar
successivo successiva successivi prossima avanti precedente indietro altri carica
volgende vorige verder meer laden
næste forrige nästa föregående neste flere fler seuraava edellinen lisää
następna następny poprzednia dalej więcej další předchozí ďalšia predchádzajúca více
következő előző több următoarea înapoi sonraki önceki ileri tiếp sau trước
berikutnya selanjutnya sebelumnya lagi
следующая далее вперед вперёд предыдущая назад ещё еще наступна попередня далі напред
επόμενη επόμενο προηγούμενη التالي التالية السابق المزيد הבא הקודם עוד अगला पिछला ถัดไป ก่อนหน้า
次 次へ 次ページ 次のページ 前へ 前のページ もっと見る さらに表示
下一页 下一頁 下页 下頁 上一页 上一頁 加载更多
載入更多 查看更多 更多 다음 이전 더보기 다음페이지
"""
_WORDS = frozenset(_WORD_LIST.split())
_FILLER_LIST = """
page pages go to the show see view results result items entries posts stories of
seite seiten zur ergebnisse einträge beiträge anzeigen page vers la résultats voir afficher
página páginas ver resultados mostrar pagina mostra risultati pagine resultaten toon sida side visa vis sivu
strona stránka stranka oldal sayfa halaman trang страница страницы показать стр сторінка σελίδα الصفحة עמוד
"""
_FILLERS = frozenset(_FILLER_LIST.split())


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to another page of the same list."""

    label: str
    address: str
    """As in the page, which may be relative; empty if only a script knows it."""


@dataclass(frozen=True, slots=True)
class Pagination:
    """The links of a list to its other pages."""

    links: tuple[PageLink, ...] = ()
    numbered: bool = False
    """Whether the pages are numbered or loaded on demand: stronger evidence of a list than "next"."""

    def without(self, addresses: "set[str]") -> "Pagination":
        """Return it without the links to these addresses."""
        return replace(self, links=tuple(one for one in self.links if one.address not in addresses))

    def select_parts(self, url: str) -> "Pagination":
        """Return the links to the other pages of the text at `url`, which an article may be split into.

        Their addresses differ from `url` in numbers and the query only, so that neither other articles of the
        site nor pages of comments are among them.
        """
        if not self.numbered:
            return Pagination()
        parts = [one for one in self.links if one.address and _is_part(url, one.address)]
        return Pagination(tuple(parts), bool(parts))


_PART_NUMBER = re.compile(r"(?:[/_-]?(?:page|seite|p|s)?[/_-]?\d{1,4})?(?:\.\w{1,5})?/?$", re.I)


def _is_part(url: str, address: str) -> bool:
    absolute = urljoin_or_empty(url, address)
    if not absolute or "#" in absolute or "comment" in absolute.lower():
        return False
    try:
        here, there = urlsplit(url), urlsplit(absolute)
    except ValueError:
        return False
    stems = [_PART_NUMBER.sub("", one.path[-_MAX_PATH:]) for one in (here, there)]
    same_query = here.path == there.path or here.query == there.query
    return stems[0] == stems[1] and len(stems[0]) > 1 and same_query


@dataclass(slots=True)
class _Control:
    element: "HtmlElement"
    label: str
    address: str
    item: "HtmlElement"
    """The outermost element that contains the control and nothing else."""
    accepted: bool = False


@dataclass(slots=True)
class _Container:
    controls: list[_Control] = field(default_factory=list)


def find_pagination(page: "HtmlElement", base: str) -> Pagination:
    """Return the links of `page` to the other pages of its list; addresses are relative to `base`.

    The evidence is `rel`, numbers side by side, the names of the elements around, and known labels. It takes
    linear time. `page` must not be pruned, because links are in `nav` and other elements that are not read.
    """
    own, seen = urldefrag(base), set[str]()
    controls = [control for control in _find_controls(page) if _is_of_site(control, own)]
    numbered = _accept_numbers(controls)
    _accept_named(controls)
    numbered |= _accept_labels(controls)
    found: list[PageLink] = []
    for control in controls:
        key = f"{control.label}\n{urljoin_or_empty(base, control.address)}"
        if control.accepted and key not in seen:
            seen.add(key)
            found.append(PageLink(control.label, control.address))
    found = _without_repeated_relations(found, base)
    return Pagination(tuple(_select(found)), numbered)


def urldefrag(url: str) -> str:
    """Return `url` without its fragment."""
    return url.partition("#")[0]


def urljoin_or_empty(base: str, address: str) -> str:
    """Return `address` relative to `base`; "" if it is invalid."""
    try:
        return urljoin(base, address)
    except ValueError:
        return ""


def _find_controls(page: "HtmlElement") -> Iterator[_Control]:
    for element in page.xpath(_CANDIDATES):
        if element.tag == "link":
            label = _relation(element)
            if label and (address := element.get("href", "").strip()):
                yield _Control(element, label, address, element, accepted=True)
            continue
        label = _label(element)
        if label and len(label) <= _MAX_LABEL:
            yield _Control(element, label, _address(element), _outermost(element), bool(_relation(element)))


def _label(element: "HtmlElement") -> str:
    text = short_text(element, _MAX_LABEL + 1) or element.get("value", "").strip()
    if any(character.isalnum() for character in text):
        return text
    image = element.find(".//img")
    named = element.get("aria-label") or element.get("title")
    alternative = image.get("alt") if image is not None else None
    # An arrow stays an arrow: it says which way it leads in every language.
    return text or " ".join((named or alternative or "").split()) or _relation(element)


def short_text(element: "HtmlElement", characters: int) -> str:
    """Return the text of `element`, cut after about `characters`."""
    pieces: list[str] = []
    length = 0
    for text in islice(element.itertext(), _MAX_CHILDREN * 4):
        pieces.append(text[: characters * 4])
        length += len(text.strip())
        if length > characters:
            break
    return " ".join(" ".join(pieces).split())


def _relation(element: "HtmlElement") -> str:
    relations = element.get("rel", "").lower().split()
    return next((_RELATIONS[relation] for relation in relations if relation in _RELATIONS), "")


def _address(element: "HtmlElement") -> str:
    for name in _ADDRESSES:
        address = element.get(name, "").strip()
        if address and _is_address(address):
            return address
    return _form_address(element) if element.tag in ("button", "input") else ""


def _is_address(address: str) -> bool:
    if address.startswith("#"):
        return address.startswith(("#/", "#!"))  # addresses of pages that scripts render
    return not re.match(r"(?!https?:)[a-z][a-z0-9+.-]*:", address, re.I)


def _form_address(button: "HtmlElement") -> str:
    above = islice(button.iterancestors(), _MAX_ANCESTORS)
    form = next((element for element in above if element.tag == "form"), None)
    name = button.get("name", "")
    if form is None or not name or form.get("method", "get").lower() != "get":
        return ""
    hidden = islice(form.iterfind(".//input[@type='hidden']"), _MAX_CHILDREN)
    fields = [(one.get("name", ""), one.get("value", "")) for one in hidden if one.get("name")]
    action = urldefrag(form.get("action", "")).partition("?")[0]
    return f"{action}?{urlencode([*fields, (name, button.get('value', ''))])}"


def _outermost(element: "HtmlElement") -> "HtmlElement":
    """Return the outermost element around `element` that contains no other element."""
    for _ in range(_MAX_WRAPPERS):
        parent = element.getparent()
        if parent is None or parent.tag in ("body", "html"):
            break
        if element.getnext() is not None or element.getprevious() is not None:
            break
        if (parent.text or "").strip() or (element.tail or "").strip():
            break
        element = parent
    return element


def _is_of_site(control: _Control, own: str) -> bool:
    if control.accepted or not control.address:
        return True
    address = urljoin_or_empty(own, control.address)
    return bool(address) and _host(address) == _host(own)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _accept_numbers(controls: Sequence[_Control]) -> bool:
    """Accept all controls beside page numbers; return whether there are any."""
    containers: dict[HtmlElement, _Container] = {}
    for control in controls:
        parent = control.item.getparent()
        if control.element.tag != "link" and parent is not None:
            containers.setdefault(parent, _Container()).controls.append(control)
    found = False
    for parent, container in containers.items():
        if _is_numbered(parent, container.controls):
            found = True
            for control in container.controls:
                control.accepted = True
    return found


def _is_numbered(parent: "HtmlElement", controls: Sequence[_Control]) -> bool:
    numbers = [int(match[1]) for one in controls if (match := _NUMBER.fullmatch(one.label))]
    if not numbers or len(set(numbers)) < len(numbers):
        return False
    if not any(character.isdigit() for one in controls for character in one.address) and any(
        one.address for one in controls
    ):
        return False
    if len(short_text(parent, _MAX_PAGER_CHARACTERS)) > _MAX_PAGER_CHARACTERS:
        return False
    directed = any(_is_directed(one.label) for one in controls)
    if min(numbers) > _FIRST_PAGES and not directed:
        return False  # years, for example
    return len(numbers) > 1 or directed or _has_neighbour(parent, numbers[0])


def _has_neighbour(parent: "HtmlElement", number: int) -> bool:
    """Return whether the page before or after `number` is named beside its link, as the current one."""
    texts = [parent.text or ""]
    for child in islice(parent, _MAX_CHILDREN):
        texts += [short_text(child, _MAX_LABEL), child.tail or ""]
    found = {int(match[1]) for text in texts if (match := _NUMBER.fullmatch(text))}
    return bool(found & {number - 1, number + 1})


def _accept_named(controls: Sequence[_Control]) -> None:
    """Accept controls in elements that are named as pagers and have few links."""
    for control in controls:
        if control.accepted or not control.address:
            continue
        above = islice((control.item, *islice(control.item.iterancestors(), _MAX_WRAPPERS)), _MAX_WRAPPERS)
        if any(
            _PAGER.search(_names(element))
            and len(short_text(element, _MAX_PAGER_CHARACTERS)) <= _MAX_PAGER_CHARACTERS
            for element in above
            if element.tag not in ("body", "html", "main")
        ):
            control.accepted = True


def _names(element: "HtmlElement") -> str:
    return " ".join(element.get(name, "")[:300] for name in ("class", "id", "aria-label")).lower()


def _accept_labels(controls: Sequence[_Control]) -> bool:
    """Accept controls by their labels; return whether one of them loads more of the list."""
    directed: dict[str, list[_Control]] = {}
    for control in controls:
        if _is_directed(control.label) or _is_directed(control.element.get("aria-label", "")):
            directed.setdefault(control.label, []).append(control)
    more = False
    for same in directed.values():
        if len({control.address for control in same}) > _MAX_SAME_LABEL:
            for control in same:
                control.accepted = False
            continue
        for control in same:
            control.accepted |= bool(control.address)
            more |= bool(control.address) and "more" in _names(control.element)
    return more


def _is_directed(label: str) -> bool:
    """Return whether `label` is "next", "previous", "more", or an arrow."""
    if not label or len(label) > _MAX_LABEL:
        return False
    words = [word.casefold() for word in _LETTERS.findall(label)]
    if not words:
        bare = "".join(label.split())
        return bool(bare) and set(bare) <= _ARROWS
    return any(word in _WORDS for word in words) and all(word in _WORDS or word in _FILLERS for word in words)


def _without_repeated_relations(found: Sequence[PageLink], base: str) -> list[PageLink]:
    """Return `found` without the links of the head that the page repeats with a label."""
    labels = set(_RELATIONS.values())
    visible = {
        urljoin_or_empty(base, one.address)
        for one in found
        if one.label not in labels and not one.label.isdecimal()
    }
    return [
        one for one in found if one.label not in labels or urljoin_or_empty(base, one.address) not in visible
    ]


def _select(found: Sequence[PageLink]) -> Sequence[PageLink]:
    """Return at most `_MAX_LINKS` links, first those that are not numbers."""
    addressed = [one for one in found if one.address] or list(found)
    if len(addressed) <= _MAX_LINKS:
        return addressed
    chosen = [one for one in addressed if not one.label.isdecimal()][:_MAX_LINKS]
    numbers = [one for one in addressed if one.label.isdecimal()]
    return [*chosen, *numbers[: _MAX_LINKS - len(chosen)]]
