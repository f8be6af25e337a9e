import os

import pytest

from maniple.reading.encoding import decode_text

RUSSIAN = "Мосты строят из камня, дерева и стали. Самый длинный пролёт в мире имеет мост в Турции."
CHINESE = "汉字是世界上最古老的文字之一，已有六千多年的历史。桥梁的建设需要很长时间。"
JAPANESE = "日本語の文章です。橋は石や鋼で作られています。世界で最も長い吊橋はトルコにあります。"
KOREAN = "한국어 문장입니다. 다리는 돌과 강철로 만들어집니다. 세계에서 가장 긴 다리는 터키에 있습니다."
FRENCH = "Les ponts sont bâtis de pierre et d’acier\u00a0; le plus long a été achevé, où l’œuvre fut jugée."

CZECH = "Mosty se staví z kamene, dřeva a oceli; nejdelší rozpětí na světě má most, který byl dokončen dříve."
POLISH = "Najdłuższe przęsło na świecie ma most w Turcji, ukończony później niż myślał ktoś ze źródła."
HUNGARIAN = "A hidakat kőből, fából és acélból építik, a leghosszabb nyílású híd két éve készült el."
TURKISH = (
    "Köprüler taştan, ahşaptan ve çelikten yapılır; en uzun açıklığı olan köprü geçen yıl tamamlanmıştır."
)
GREEK = "Οι γέφυρες κατασκευάζονται από πέτρα, ξύλο και χάλυβα."
GERMAN = "Die größte Spannweite hat eine Brücke, die für Fußgänger schön und über dem Fluss gebaut ist."


@pytest.mark.parametrize("header", [None, "iso-8859-1", "windows-1252", "utf-8"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CZECH, "cp1250"),
        (CZECH, "iso8859-2"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859-2"),
        (HUNGARIAN, "cp1250"),
        (TURKISH, "cp1254"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (GREEK, "iso8859-7"),
        (CHINESE, "gb18030"),
        (JAPANESE, "cp932"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "euc_kr"),
        (GERMAN, "cp1252"),
        (FRENCH, "cp1252"),
    ],
)
def test_a_server_that_names_one_encoding_for_everything_is_not_believed(
    text: str, encoding: str, header: str | None
) -> None:
    body = f"<html><head><title>Bridges</title></head><body><p>{text * 3}</p></body></html>".encode(encoding)
    assert text in decode_text(body, header)


def test_a_page_that_names_its_encoding_is_believed_over_the_default_of_its_server() -> None:
    body = f"<meta charset='windows-1250'><p>{CZECH[:40]}</p>".encode("cp1250")
    assert CZECH[:40] in decode_text(body, "iso-8859-1")


def test_a_few_letters_of_another_language_do_not_make_another_encoding() -> None:
    body = "<p>Pelé, Müller, Ibrahimović and Ødegaard played; Müller won.</p>".replace("ć", "c").encode(
        "cp1252"
    )
    assert "Ødegaard" in decode_text(body, "iso-8859-1")


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
