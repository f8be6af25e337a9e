import pytest

from maniple.search.providers.wikipedia import wikipedia_language


@pytest.mark.parametrize(
    ("query", "locale", "language"),
    [
        ("stone bridges", "", "en"),
        ("Steinbrücken", "de-DE", "de"),
        ("Steinbrücken", "de_AT", "de"),
        ("赵州桥", "", "zh"),
        ("东京的桥", "en-US", "zh"),
        ("東京 橋", "ja-JP", "ja"),
        ("東京の橋", "zh-CN", "ja"),
        ("한강의 다리", "", "ko"),
        ("мосты", "", "ru"),
        ("мости", "uk-UA", "uk"),
        ("мосты", "de", "ru"),
        ("جسور", "", "ar"),
        ("پل‌ها", "fa-IR", "fa"),
        ("Python 3.14", "zh-CN", "en"),
        ("bridges", "../../x", "en"),
        ("bridges", "x.evil.test/", "en"),
        ("bridges", "xx", "en"),
        ("broer", "nb-NO", "no"),
    ],
)
def test_a_wikipedia_is_chosen_by_script_then_by_locale(query: str, locale: str, language: str) -> None:
    assert wikipedia_language(query, locale, "en") == language


def test_the_setting_is_used_without_other_signs_of_a_language() -> None:
    assert wikipedia_language("pontes", "", "pt") == "pt"
    assert wikipedia_language("мости", "", "bg") == "bg"
