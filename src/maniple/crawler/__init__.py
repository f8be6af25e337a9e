"""Reading web pages without reaching what is not public."""

from maniple.crawler.article import Article
from maniple.crawler.crawl import Crawler
from maniple.crawler.guard import AddressGuard

__all__ = ["AddressGuard", "Article", "Crawler"]
