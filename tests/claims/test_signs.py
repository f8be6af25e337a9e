"""A minus sign that a claim leaves out or adds, and a median given as the mean."""

import pytest

from tests.claims.test_misplaced import kinds

pytestmark = pytest.mark.anyio

ACCOUNTS = """# Hallsund in figures

The lowest temperature of the winter was −14.3 °C, measured in February. The mean of January was -6.2 °C.
The company reported a result of −3.4 million euros for 2023, after a profit of 1.8 million euros in 2022.
Cash flow came to -$5.7 million. Its net margin was -2.7 %. Exports changed by −8.5 percent in the summer.
Imports decreased by 4.6 percent. The share of older buyers is 10 -15 %.

The median household income is 41,300 euros; the mean is 48,900 euros.
The average rent is 11.40 euros a metre.
The station lies 37 m below sea level. The lookout stands at 212 m.

| Quarter | Change |
|---|---|
| Spring | -4.1 % |
| Autumn | 3.9 % |
"""
GERMAN = """# Hallsund in Zahlen

Das Ergebnis des Jahres 2023 betrug −3,4 Millionen Euro. Die Ausfuhren veränderten sich um −8,5 Prozent.
Das Medianeinkommen der Haushalte liegt bei 41.300 Euro, der Median der Mieten bei 912 Euro.
"""
CHINESE = "# 哈尔松德\n\n公司2023年业绩为-340万欧元。出口变化为-8.5%。\n"


@pytest.mark.parametrize(
    "text",
    [
        "The lowest temperature of the winter was 14.3 °C [1].",
        "The mean of January was 6.2 °C [1].",
        "The company reported a result of 3.4 million euros for 2023 [1].",
        "The company made a profit of €3.4 million in 2023 [1].",
        "Cash flow came to $5.7 million [1].",
        "The net margin was 2.7 % [1].",
        "Exports rose by 8.5 percent in the summer [1].",
        "| Quarter | Change |\n|---|---|\n| Spring | 4.1 % [1] |",
        "The lookout stands at -212 m [1].",
    ],
)
async def test_a_figure_whose_sign_differs_is_marked(text: str) -> None:
    assert "contradicted" in await kinds(text, ACCOUNTS)


@pytest.mark.parametrize(
    "text",
    [
        "The lowest temperature of the winter was minus 14.3 °C [1].",
        "It was 14.3 degrees below zero in February [1].",
        "January was freezing, with a mean of 6.2 °C of frost [1].",
        "The company reported a result of −3.4 million euros for 2023 [1].",
        "The company lost 3.4 million euros in 2023 [1].",
        "2023 was a bad year. The company closed it with a loss; it came to 3.4 million euros [1].",
        "A deficit of €3.4 million followed in 2023 [1].",
        "Cash flow was negative at $5.7 million [1].",
        "Cash flow came to −$5.7 million [1].",
        "Its net margin was in the red by 2.7 % [1].",
        "In the summer exports were 8.5 percent lower [1].",
        "Exports contracted by 8.5 percent in the summer [1].",
        "Imports: −4.6 percent [1].",
        "Older buyers have a share of 10 to 15 % [1].",
        "The station lies at −37 m [1].",
        "| Quarter | Decline |\n|---|---|\n| Spring | 4.1 % [1] |",
        "| Quarter | Change |\n|---|---|\n| Spring | (4.1 %) [1] |",
        "| Quarter | Change |\n|---|---|\n| Autumn | 3.9 % [1] |",
    ],
)
async def test_words_may_stand_for_a_sign(text: str) -> None:
    assert not {"absent", "contradicted"} & await kinds(text, ACCOUNTS)


@pytest.mark.parametrize(
    ("text", "source", "is_marked"),
    [
        ("Das Ergebnis des Jahres 2023 betrug 3,4 Millionen Euro [1].", GERMAN, True),
        ("Der Verlust des Jahres 2023 betrug 3,4 Millionen Euro [1].", GERMAN, False),
        ("Die Ausfuhren gingen um 8,5 Prozent zurück [1].", GERMAN, False),
        ("Exports shrank by 8.5 percent [1].", GERMAN, False),
        ("公司2023年业绩为340万欧元[1]。", CHINESE, True),
        ("公司2023年亏损340万欧元[1]。", CHINESE, False),
        ("出口下降了8.5%[1]。", CHINESE, False),
    ],
)
async def test_signs_are_read_in_other_languages(text: str, source: str, is_marked: bool) -> None:
    assert ("contradicted" in await kinds(text, source)) is is_marked


@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        ("The mean household income is 41,300 euros [1].", True),
        ("The median household income is 48,900 euros [1].", True),
        ("The median rent is 11.40 euros a metre [1].", True),
        ("Households have a median income of 41,300 euros [1].", False),
        ("The median household income is 41,300 euros, the mean 48,900 euros [1].", False),
        ("Households earn 48,900 euros on average [1].", False),
        ("The mean rent is 11.40 euros a metre [1].", False),
    ],
)
async def test_a_median_is_not_a_mean(text: str, is_marked: bool) -> None:
    assert ("contradicted" in await kinds(text, ACCOUNTS)) is is_marked
