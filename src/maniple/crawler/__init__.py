"""Reading web pages without reaching what is not public."""

from maniple.crawler.article import Article, Document
from maniple.crawler.crawl import Crawler
from maniple.crawler.rendering import Render

__all__ = ["Article", "Crawler", "Document", "Render"]
