"""What a file's bytes say, in the encodings of before UTF-8."""

import os
import time

import pytest

from maniple.tools.text_file import decode_text

_CHINESE = "2023年上海市的人口统计:全市常住人口为二千四百八十七万人,其中外来人口约一千万。\n"
_WESTERN = "Größe;Straße;créée;déjà;ÄÖÜ;naïve words and the rest\r\n"
_KOREAN = "안녕하세요 이것은 한국어로 쓰여진 문장입니다 그리고 조금 더 길게 씁니다"
_JAPANESE = "これは日本語の文章です。ひらがなとカタカナと漢字があります。"
_RUSSIAN = "Это предложение написано по-русски, и оно не короткое."


@pytest.mark.parametrize("encoding", ["gbk", "gb18030"])
@pytest.mark.parametrize("text", [_CHINESE, "name,city,sum\nanna,北京,17\n", _CHINESE * 1_000])
def test_chinese_text_is_read_and_written_as_it_was(text: str, encoding: str) -> None:
    file = decode_text(text.encode(encoding))
    assert file is not None and (file.text, file.encoding) == (text, "gb18030")
    assert file.with_text(text + "完").content() == (text + "完").encode(encoding)


def test_half_a_chinese_character_at_a_cut_is_left_out() -> None:
    file = decode_text(_CHINESE.encode("gbk")[:-2], is_cut=True)
    assert file is not None and file.text == _CHINESE[:-2]


def test_western_text_is_not_taken_for_chinese() -> None:
    file = decode_text(_WESTERN.encode("cp1252"))
    assert file is not None and (file.text, file.encoding) == (_WESTERN, "windows-1252")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(_KOREAN, "euc_kr"), (_JAPANESE, "shift_jis"), (_JAPANESE, "euc_jp"), (_RUSSIAN, "cp1251")],
)
def test_what_is_in_neither_is_not_read_as_something_else(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) is None


def test_a_binary_file_is_detected_from_its_beginning() -> None:
    assert all(decode_text(os.urandom(size)) is None for size in (500, 5_000, 50_000))
    begun = time.process_time()
    assert decode_text(b"\xb5\xc4" * 5_000_000 + b"\0") is None
    assert decode_text(b"a" * 10_000_000 + b"\xff") is not None
    assert time.process_time() - begun < 2
