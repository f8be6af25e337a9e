"""Reading web pages without reaching what is not public."""

from maniple.crawler.article import Article, Document
from maniple.crawler.crawl import Crawler
from maniple.crawler.guard import AddressGuard
from maniple.crawler.rendering import Render

__all__ = ["AddressGuard", "Article", "Crawler", "Document", "Render"]
