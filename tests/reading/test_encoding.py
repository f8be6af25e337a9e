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


HEBREW = "גשרים נבנים מאבן, מעץ ומפלדה. המפתח הארוך בעולם הוא של הגשר בטורקיה, שנפתח בשנה שעברה."
ARABIC = "تبنى الجسور من الحجر والخشب والفولاذ. أطول جسر معلق في العالم يقع في تركيا وافتتح في العام الماضي."
THAI = "สะพานสร้างจากหิน ไม้ และเหล็ก สะพานที่ยาวที่สุดในโลกอยู่ในประเทศตุรกี ซึ่งเปิดเมื่อปีที่แล้ว"
UKRAINIAN = "Мости будують із каменю, дерева та сталі. Найдовший прогін у світі має міст у Туреччині."
TRADITIONAL = "橋樑由石頭、木材和鋼鐵建成。世界上最長的懸索橋在土耳其，經過五年的建設，於去年開通。"
WRITTEN = {
    "cp1251": RUSSIAN,
    "koi8-r": RUSSIAN,
    "iso8859-5": RUSSIAN,
    "cp866": RUSSIAN,
    "koi8-u": UKRAINIAN,
    "cp1253": GREEK,
    "cp1255": HEBREW,
    "cp1256": ARABIC,
    "cp874": THAI,
    "gbk": CHINESE,
    "big5": TRADITIONAL,
    "cp932": JAPANESE,
    "euc_jp": JAPANESE,
    "euc_kr": KOREAN,
    "cp1254": TURKISH,
    "cp1250": CZECH,
    "cp1252": GERMAN,
}
DECLARED = (
    "windows-1251", "koi8-r", "iso-8859-5", "windows-1253", "windows-1256", "gb2312", "big5", "shift_jis",
    "euc-kr", "windows-1250", "windows-1254", "utf-8",
)  # fmt: skip


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("written", WRITTEN)
def test_a_wrong_encoding_of_any_script_is_not_believed(written: str, declared: str) -> None:
    text = WRITTEN[written]
    body = f"<html><head><title>Bridges</title></head><body><p>{text * 2}</p></body></html>".encode(written)
    assert text in decode_text(body, declared)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("ООО «РОМАШКА» ИНН КПП БИК ОГРН ЮФХЦЧШЩ ФЫВА ЙЦУКЕН ПРОЛДЖЭ", "cp1251"),
        ("Щука, хек, ёрш, язь, цапля, эму; СберБанк, ЯндексДиск, ВКонтакте", "koi8-r"),
        ("株式会社東京電力福島第一原子力発電所千代田区永田町", "cp932"),
        ("東京都千代田区永田町一丁目七番一号国会議事堂前駅", "euc_jp"),
        ("臺灣積體電路製造股份有限公司鴻海精密工業", "big5"),
        ("ΑΘΗΝΑ ΨΥΧΗ ΞΕΝΟΔΟΧΕΙΟ ΦΩΣ ΧΑΡΤΗΣ ΨΩΜΙ ΞΥΛΟ ΒΑΘΟΣ", "cp1253"),
        ("Müller über Straße", "cp1252"),
    ],
)
def test_a_right_declaration_of_unusual_text_is_believed(text: str, encoding: str) -> None:
    assert text in decode_text(f"<p>{text}".encode(encoding), encoding)
