"""The language of a text, and the headings of lists of sources."""

import pytest

from maniple.evidence.source_list import detect_language, is_source_heading


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The price of tea was 5.", "en"),
        ("Der Preis stieg und die Menge fiel.", "de"),
        ("价格上涨了5%。", "zh"),
        ("価格は5%上がった。", "ja"),
        ("Цена выросла.", "ru"),
        ("Price 5 EUR", ""),
        ("der the", ""),
        ("", ""),
        ("De 1975 à 1977, la part de la production a reculé. En 1978, une crue l'a détruit.", "fr"),
        ("De 1975 a 1977 la parte de la producción bajó. En 1978, una crecida lo destruyó.", "es"),
        ("De dam van Kerval is in 1931 geopend, en het meer van de stad is niet groot.", "nl"),
    ],
)
def test_words_tell_the_language_and_a_tie_tells_none(text: str, language: str):
    assert detect_language(text) == language


@pytest.mark.parametrize("words", ["Sources", "7. Quellen:", "参考文献"])
def test_the_name_of_a_source_list_is_known_in_many_languages(words: str):
    assert is_source_heading(words)


def test_another_heading_is_no_name_of_a_source_list():
    assert not is_source_heading("Sources of energy")
