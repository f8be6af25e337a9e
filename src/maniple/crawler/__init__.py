"""Reading web pages without reaching what is not public."""

from maniple.crawler.article import Article
from maniple.crawler.crawler import Crawler, PageRenderer
from maniple.crawler.document import FetchedDocument

__all__ = ["Article", "Crawler", "FetchedDocument", "PageRenderer"]
