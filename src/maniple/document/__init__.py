"""The document tree of a report: parsed once, read by checks and renderers."""

from maniple.document.nodes import MARK, DocumentTree
from maniple.document.tree import parse_document

__all__ = ["MARK", "DocumentTree", "parse_document"]
