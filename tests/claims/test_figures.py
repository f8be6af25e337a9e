"""Figures in texts of many languages."""

import time
from decimal import Decimal

import pytest

from maniple.claims.figures import agree, find_figures, with_unit
from maniple.claims.units import read_head_unit


def shown(text: str, language: str = "") -> list[tuple[str, str, str]]:
    """Return value, kind and unit of each figure."""
    return [(f"{f.value.normalize():f}", f.kind, f.unit) for f in find_figures(text, language)]


def supports(source: str, claim: str) -> bool:
    found = find_figures(source)
    return all(any(agree(f, g) for g in found) for f in find_figures(claim) if f.is_judged)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1.37 billion", ("1370000000", "money", "$")),
        ("23,7 Mio. Euro", ("23700000", "money", "EUR")),
        ("96,2 millions d'euros", ("96200000", "money", "EUR")),
        ("5 mil millones de euros", ("5000000000", "money", "EUR")),
        ("12,5 млн тонн", ("12500000000000", "quantity", "g")),
        ("214.7亿元", ("21470000000", "money", "CNY")),
        ("3亿5000万元", ("350000000", "money", "CNY")),
        ("1兆2345億円", ("1234500000000", "money", "JPY")),
        ("3조 5천억 원", ("3500000000000", "money", "KRW")),
        ("Rs 500 crore", ("5000000000", "money", "INR")),
        ("5 Billionen Euro", ("5000000000000", "money", "EUR")),
        ("１２％", ("12", "percent", "%")),
        ("6.4 percent", ("6.4", "percent", "%")),
        ("4,5 pour cent", ("4.5", "percent", "%")),
        ("百分之五", ("5", "percent", "%")),
        ("5成以上", ("50", "percent", "%")),
        ("1.5个百分点", ("1.5", "points", "pp")),
        ("3,5 Prozentpunkte", ("3.5", "points", "pp")),
        ("2 points de pourcentage", ("2", "points", "pp")),
        ("25 basis points", ("0.25", "points", "pp")),
        ("threefold", ("3", "factor", "x")),
        ("10-fold", ("10", "factor", "x")),
        ("3×", ("3", "factor", "x")),
        ("3.5倍", ("3.5", "factor", "x")),
        ("1.5 GW", ("1500000000", "quantity", "W")),
        ("600 kW·h", ("2160000000", "quantity", "J")),
        ("5 km²", ("5000000", "quantity", "m2")),
        ("3 Quadratkilometer", ("3000000", "quantity", "m2")),
        ("31 mg/l", ("31", "quantity", "g/m3")),
        ("1.5 MtCO2e", ("1500000000000", "quantity", "g")),
        ("-5.2 %", ("-5.2", "percent", "%")),
        ("3.2×10^6 m", ("3200000", "quantity", "m")),
        ("p = 3·10⁻⁸.", ("0.00000003", "number", "")),
        ("p = 3.1e-08.", ("0.000000031", "number", "")),
        ("6 × 10²³, they say", ("600000000000000000000000", "number", "")),
        ("2½ hours", ("9000", "quantity", "s")),
        ("30多万", ("300000", "number", "")),
        ("in 2019", ("2019", "year", "")),
    ],
)
def test_a_figure_is_read_with_its_scale_and_unit(text, expected):
    assert shown(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "Covid-19",
        "F-35",
        "a 5G mast",
        "version 3.11.7",
        "192.168.0.1",
        "at 14:30",
        "a 3:2 win",
        "at 14 h 30",
        "+49 30 1234567",
        "10.1000/xyz123",
        "https://a.org/12/34",
        "as [9] and [3, 4] say",
        "at 5 pm",
        "A4",
    ],
)
def test_identifiers_times_scores_and_citations_are_no_figures(text):
    assert find_figures(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "ISO 9001",
        "page 124",
        "the 21st century",
        "five of them",
        "7 of them",
        "two thirds",
        "per 100,000 people",
        "im 19. Jahrhundert",
        "第25届",
        "Boeing 737",
    ],
)
def test_labels_ordinals_counts_and_words_are_not_judged(text):
    assert [f.is_judged for f in find_figures(text)] == [False]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5–7 %", [5, 7]),
        ("between 5 and 7 million", [5_000_000, 7_000_000]),
        ("$5-7 billion", [5_000_000_000, 7_000_000_000]),
        ("between $5 and $7 million", [5_000_000, 7_000_000]),
        ("from 900,000 to 1.2 million", [900_000, 1_200_000]),
        ("12, 14 and 16 km", [12_000, 14_000, 16_000]),
    ],
)
def test_the_ends_of_a_range_share_its_unit_and_scale(text, values):
    found = find_figures(text)
    assert [f.value for f in found] == values
    assert len({(f.kind, f.unit) for f in found}) == 1


@pytest.mark.parametrize(
    ("text", "hedge"),
    [
        ("about 4.9 million", "about"),
        ("more than 1,200", "over"),
        ("no fewer than 300", "over"),
        ("knapp 2,5 Mrd. Euro", "under"),
        ("约12.86万辆", "about"),
        ("1,200 or more", "over"),
        ("rose to 300", ""),
    ],
)
def test_hedges_are_read(text, hedge):
    assert [f.about for f in find_figures(text)] == [hedge]


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("It has 4,872,300 passengers.", "About 4.9 million passengers"),
        ("1 240 Kilometer Rohre", "1,240 km of pipes"),
        ("386 000 hectolitres", "38,6 millions de litres"),
        ("出口12.86万辆", "128,600 vehicles"),
        ("出口额为214.7亿元", "2147000万元，即约215亿元"),
        ("a share of 48%", "almost half (48 percent)"),
        ("reduced by a quarter", "reduced by 25 %"),
        ("1,500 MW", "1.5 GW"),
        ("930 miles", "1,500 km"),
        ("68 °F", "20 °C"),
        ("84.6m passengers", "84.6 million passengers"),
        ("five million euros", "5 Mio. Euro"),
        ("lower by 4.6 mmHg", "收缩压低4.6毫米汞柱"),
        ("a yield of 3.2 t/ha", "3.2 tonnes per hectare"),
        ("7 litres on 100 km", "7 l/100 km"),
    ],
)
def test_the_same_figure_in_another_spelling_agrees(source, claim):
    assert supports(source, claim)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("It has 4,872,300 passengers.", "4,827,300 passengers"),
        ("by 1.2 percentage points", "by 1.2 percent"),
        ("$1.37 billion", "$1.37 million"),
        ("lumirexin 40 mg", "lumirexin 40 g"),
        ("386 000 hectolitres", "386 000 litres"),
        ("214.7亿元", "214.7万元"),
        ("€20 million", "$20 million"),
        ("31 mg/l", "12 mg/l"),
        ("a gap of 4.6 mm", "4.6毫米汞柱"),
        ("a flow of 20 l/s", "20 kWh"),
    ],
)
def test_another_figure_does_not_agree(source, claim):
    assert not supports(source, claim)


def test_a_cell_gets_the_scale_and_unit_of_its_head():
    (cell,) = find_figures("1.84")
    head = read_head_unit("Trips per day (million)")
    assert head is not None
    assert with_unit(cell, head).value == Decimal("1840000")
    length = read_head_unit("Tram length (km)")
    assert length is not None
    assert with_unit(cell, length).unit == "m"
    assert read_head_unit("Year") is None


@pytest.mark.parametrize(
    "text", ["In 2019 an increase", "the 2019 second quarter", "In 2020 J. Smith", "In 2018 real wages"]
)
def test_a_word_behind_a_year_is_no_unit(text):
    assert [f.kind for f in find_figures(text) if f.is_judged] == ["year"]


@pytest.mark.parametrize(
    ("text", "spelled", "unit"),
    [
        ("低4.6毫米汞柱（95%）", "4.6毫米汞柱", "Pa"),
        ("4.6 mm Hg lower", "4.6 mm Hg", "Pa"),
        ("4.6 millimetres of mercury", "4.6 millimetres of mercury", "Pa"),
        ("на 5 мм рт. ст. ниже", "5 мм рт. ст.", "Pa"),
        ("7 l/100 km", "7 l/100 km", "m3/m"),
        ("7升/100公里", "7升/100公里", "m3/m"),
        ("6毫克每升", "6毫克每升", "g/m3"),
        ("9.81 m/s² down", "9.81 m/s²", "m/s2"),
        ("3 W/(m²·K)", "3 W/(m²·K)", "W/m2·K"),
        ("5 N·m", "5 N·m", "N·m"),
        ("6 mg L⁻¹", "6 mg L⁻¹", "g/m3"),
        ("5 metres per second", "5 metres per second", "m/s"),
        ("3.2 tonnes per hectare", "3.2 tonnes per hectare", "g/m2"),
        ("3 tonne-kilometres", "3 tonne-kilometres", "g·m"),
        ("8 kW h", "8 kW h", "J"),
        ("100兆帕", "100兆帕", "Pa"),
        ("50克拉", "50克拉", "g"),
        ("20ミリグラム", "20ミリグラム", "g"),
        ("5밀리그램", "5밀리그램", "g"),
        ("5平方英里", "5平方英里", "m2"),
        ("40 g CO2/km", "40 g CO2/km", "g/m"),
        ("13 ºC", "13 ºC", "degC"),
    ],
)
def test_a_unit_is_the_longest_one_that_stands_there(text, spelled, unit):
    [figure] = [one for one in find_figures(text) if one.text == spelled]
    assert figure.unit == unit


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("20ミリバレル", ""),
        ("50巴西雷亚尔", ""),
        ("3 metros por 4 metros", "m"),
        ("5 kg pro Kopf", "g"),
        ("a 5 m-high wall", "m"),
    ],
)
def test_a_word_that_only_begins_like_a_unit_is_none(text, unit):
    assert find_figures(text)[0].unit == unit


def test_offsets_point_into_the_text():
    text = "Der Preis (über 2,16 €) stieg auf ３,５ Mio. €."
    assert [text[f.start : f.end] for f in find_figures(text)] == ["2,16 €", "３,５ Mio. €"]


@pytest.mark.parametrize(
    "piece", ["1", " ", "1,", "1.", "1 ", "1-", "1:", "123 ", "[1,", "一二", "1万", "a", "-", "%"]
)
def test_hundred_kilobytes_of_anything_are_read_in_linear_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    find_figures(text)
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("41 h 17 min 08 s", 148_628),
        ("4 min 06 s", 246),
        ("15 часов 35 минут", 56_100),
        ("1 minuto e 17 secondi", 77),
    ],
)
def test_the_parts_of_a_period_are_one_figure(text, value):
    (figure,) = find_figures(text)
    assert (figure.value, figure.unit) == (value, "s")


def test_four_digits_that_count_people_are_no_year():
    assert [one.kind for one in find_figures("全年出生人口2180人")] == ["number"]


@pytest.mark.parametrize(
    ("before", "hedge"),
    [
        ("in the region of", "about"),
        ("YAKLAŞIK", "about"),
        ("à peu près", "about"),
        ("d'environ", "about"),
        ("jusqu’à", "under"),
        ("“about", "about"),
        ("**over**", "over"),
        ("mer än", "over"),
        ("inte mer än", "under"),
        ("nie więcej niż", "under"),
        ("no fewer than", "over"),
        ("in total", ""),
        ("gli alle", ""),
    ],
)
def test_a_hedge_has_up_to_four_words_in_any_case_and_may_be_marked(before, hedge):
    assert [one.about for one in find_figures(f"{before} 512 km")] == [hedge]


def test_a_power_of_ten_that_is_cut_off_is_none():
    assert shown("2×10⁻") == [("2", "number", ""), ("10", "number", "")]
