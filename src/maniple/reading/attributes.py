"""What stays of the attributes of an article: addresses, made absolute, and what tables and code need."""

from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_KEPT = {"href", "src", "alt", "colspan", "rowspan", "start"}
# Where pages that load their images late put the address; what is in `src` then is a placeholder.
_LATE = ("data-src", "data-original", "data-lazy-src", "data-srcset")
# An element costs a converter as much as so many characters.
_ELEMENT_COST = 16


def clean_attributes(root: "HtmlElement", base: str) -> None:
    """Make links and images absolute against `base`.

    Those that are not http or https go, and images that were shown before.
    """
    seen: set[str] = set()
    for element in list(root.iter()):
        if element.tag == "img":
            _find_source(element)
        kept = _KEPT | {"class"} if element.tag in ("pre", "code") else _KEPT
        attributes = {name: value for name, value in element.attrib.items() if name in kept}
        element.attrib.clear()
        element.attrib.update(attributes)
        for name in ("href", "src"):
            if name in element.attrib:
                _make_absolute(element, name, base)
        if element.tag == "img":
            url = element.get("src", "")
            if not url or url in seen:
                element.clear(keep_tail=True)
                element.tag = "span"
            seen.add(url)


def keep_first(root: "HtmlElement", characters: int) -> bool:
    """Whether `root` is kept whole: what follows its first `characters` goes, so that nobody converts it.

    An element counts as sixteen characters: a page of nothing but tags ends too.
    """
    total = 0
    for element in root.iter():
        total += _ELEMENT_COST + len(element.text or "") + len(element.tail or "")
        if total > characters:
            _drop_after(element, root)
            return False
    return True


def _find_source(image: "HtmlElement") -> None:
    late = [
        value for name in _LATE if (value := image.get(name, "").strip()) and not value.startswith("data:")
    ]
    if not image.get("src", "").strip() or image.get("src", "").startswith("data:"):
        late.append(image.get("srcset", "").strip())
    if late and late[0]:
        image.set("src", late[0].split(maxsplit=1)[0].rstrip(","))


def _make_absolute(element: "HtmlElement", name: str, base: str) -> None:
    try:
        url = urljoin(base, element.attrib[name].strip())
    except ValueError:
        url = ""
    if url.startswith(("http://", "https://")):
        element.attrib[name] = url
    else:
        del element.attrib[name]


def _drop_after(element: "HtmlElement", root: "HtmlElement") -> None:
    for child in list(element):
        element.remove(child)
    while element is not root:
        parent = element.getparent()
        for sibling in list(element.itersiblings()):
            parent.remove(sibling)
        element = parent
