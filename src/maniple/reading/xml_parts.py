"""XML of documents: parsed without entities and without anything outside of the file."""

from typing import TYPE_CHECKING, Any

from maniple.reading import UnreadableDocument

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
else:
    Element = Any


def parse_xml(body: bytes) -> "Element":
    """Return the root of a part of a document.

    Raises:
        UnreadableDocument: it is damaged, or declares entities, as no office program does.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableDocument("is damaged: a part of it is no XML") from error
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise UnreadableDocument("is damaged: it declares entities of XML")
    return root


def local_name(element: "Element") -> str:
    """Return the name of an element without its namespace; "" for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def local_attribute(element: "Element | None", name: str) -> str:
    """Return an attribute by its name without a namespace; "" if there is none."""
    if element is None:
        return ""
    found = (value for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name)
    return str(next(found, ""))


def find_child(element: "Element | None", name: str) -> "Element | None":
    """Return the first child of this name without a namespace."""
    return None if element is None else next((one for one in element if local_name(one) == name), None)


def find_children(element: "Element | None", name: str) -> "list[Element]":
    """Return the children of this name without a namespace."""
    return [] if element is None else [one for one in element if local_name(one) == name]


def text_of(element: "Element") -> str:
    """Return all text of an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())
