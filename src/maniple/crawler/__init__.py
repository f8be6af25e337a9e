"""Fetching and reading public web pages."""

from maniple.crawler.article import Article
from maniple.crawler.crawler import Crawler, PageRenderer
from maniple.crawler.document import FetchedDocument

__all__ = ["Article", "Crawler", "FetchedDocument", "PageRenderer"]
