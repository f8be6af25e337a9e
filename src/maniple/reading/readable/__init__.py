"""Finding what a person would read on a page: the article without menus, banners and comments."""

from maniple.reading.readable.part import readable_part, text_length

__all__ = ["readable_part", "text_length"]
