"""Scale words of many languages: one number in two notations agrees, and a wrong scale is marked."""

from itertools import permutations

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.claims.units import read_tail
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

RIGHT = {
    "en": "The dam holds 48.6 million cubic metres of water.",
    "de": "Die Talsperre fasst 48,6 Mio. Kubikmeter Wasser.",
    "fr": "Le barrage retient 48,6 millions de mètres cubes d'eau.",
    "pl": "Zapora w 2019 roku mieściła 48,6 mln metrów sześciennych wody.",
    "ru": "Плотина вмещает 48,6 млн кубометров воды.",
    "el": "Το φράγμα χωρά 48,6 εκατ. κυβικά μέτρα νερού.",
    "ar": "يتسع السد لنحو 48.6 مليون متر مكعب من الماء.",
    "fa": "این سد ۴۸٫۶ میلیون متر مکعب آب دارد.",
    "hi": "बाँध में 4.86 करोड़ घन मीटर पानी है।",
    "th": "เขื่อนเก็บน้ำได้ 48.6 ล้านลูกบาศก์เมตร",
    "vi": "Đập chứa 48,6 triệu mét khối nước.",
    "id": "Bendungan itu menampung 48,6 juta meter kubik air.",
    "zh": "该水坝蓄水4860万立方米。",
    "ja": "このダムの貯水量は4,860万立方メートルである。",
    "ko": "이 댐의 저수량은 4,860만 세제곱미터이다.",
}
SCALED = {
    "en": ("48.6 million", "48.6 billion"),
    "de": ("48,6 Mio.", "48,6 Mrd."),
    "fr": ("48,6 millions", "48,6 milliards"),
    "ru": ("48,6 млн", "48,6 млрд"),
    "el": ("48,6 εκατ.", "48,6 δισ."),
    "fa": ("میلیون", "میلیارد"),
    "hi": ("4.86 करोड़", "4.86 लाख"),
    "th": ("48.6 ล้าน", "48.6 พัน"),
    "vi": ("48,6 triệu", "48,6 tỷ"),
    "id": ("48,6 juta", "48,6 miliar"),
    "zh": ("4860万", "4860亿"),
    "ja": ("4,860万", "4,860億"),
}


async def find_marked(text: str, source: str) -> list[str]:
    check = await ReportCheck.of(Read(("https://dam.test/", "Dam", source)), researched=True)
    return [one.reason for one in await check.findings(text)]


def _cite(text: str) -> str:
    return f"{text.rstrip('.。।')} [1].\n"


@pytest.mark.parametrize(("source", "claim"), [*permutations(RIGHT, 2)])
async def test_one_number_in_two_notations_agrees(source, claim):
    assert await find_marked(_cite(RIGHT[claim]), RIGHT[source]) == []


@pytest.mark.parametrize("claim", SCALED)
@pytest.mark.parametrize("source", RIGHT)
async def test_a_wrong_scale_is_marked(source, claim):
    right, wrong = SCALED[claim]
    assert right in RIGHT[claim]
    assert await find_marked(_cite(RIGHT[claim].replace(right, wrong)), RIGHT[source])


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        (" tỷ đồng", 9),
        (" ngàn tỷ đồng", 12),
        (" ล้านล้านบาท", 12),
        (" cr rupees", 7),
        (" χιλιάδες", 3),
        (" lakh crore", 12),
        (" mia. kr.", 9),
        (" на год", 0),
        (" ta people", 0),
    ],
)
def test_scale_words_are_read(text, scale):
    assert read_tail(text, 0).scale == scale


async def test_a_year_in_polish_is_no_period():
    marked = await find_marked("The mill opened in 2019 [1].\n", "Młyn otwarto w 2019 roku.")
    assert marked == []
    marked = await find_marked(
        "W 2021 roku otwarto młyn w Tolmie [1].\n", "W 2019 roku otwarto młyn w Tolmie."
    )
    assert marked
