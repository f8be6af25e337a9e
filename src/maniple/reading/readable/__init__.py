"""Finding what a person would read on a page: the article without menus, banners and comments."""

from maniple.reading.readability import find_readable_part, text_length

__all__ = ["find_readable_part", "text_length"]
