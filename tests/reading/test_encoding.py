import os

import pytest

from maniple.reading.encoding import decode_text

RUSSIAN = "Мосты строят из камня, дерева и стали. Самый длинный пролёт в мире имеет мост в Турции."
CHINESE = "汉字是世界上最古老的文字之一，已有六千多年的历史。桥梁的建设需要很长时间。"
JAPANESE = "日本語の文章です。橋は石や鋼で作られています。世界で最も長い吊橋はトルコにあります。"
KOREAN = "한국어 문장입니다. 다리는 돌과 강철로 만들어집니다. 세계에서 가장 긴 다리는 터키에 있습니다."
FRENCH = "Les ponts sont bâtis de pierre et d’acier\u00a0; le plus long a été achevé, où l’œuvre fut jugée."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (CHINESE, "gbk"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
        (FRENCH, "cp1252"),
        (FRENCH, "utf-16-le"),
        (FRENCH, "utf-16-be"),
        (CHINESE, "utf-8"),
    ],
)
def test_an_encoding_that_is_not_named_is_found_out(text: str, encoding: str) -> None:
    assert text in decode_text(f"<html><body class=x><p>{text * 5}</p></body></html>".encode(encoding), None)


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "us-ascii", "gbk", "shift_jis", "utf-16"])
def test_utf_8_under_a_wrong_name_is_read_as_what_it_is(charset: str) -> None:
    assert RUSSIAN in decode_text(f"<p>{RUSSIAN}</p>".encode(), charset)


def test_a_few_damaged_bytes_do_not_make_another_encoding_of_the_declared_one() -> None:
    body = (CHINESE * 20).encode("gbk") + b"\xff" + CHINESE.encode("gbk")
    assert decode_text(body, "gb2312").count(CHINESE) == 21


def test_bytes_without_a_meaning_are_read_all_the_same() -> None:
    assert isinstance(decode_text(os.urandom(50_000), "utf-8"), str)
