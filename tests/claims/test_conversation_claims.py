"""Claims about what the user has asked, and what the team has said."""

import pytest

from maniple.claims.conversation_claims import find_said_clauses
from maniple.claims.report_check import ReportCheck, TeamTexts
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

LINE = "The Karsund line carried 4,872,300 passengers in 2024. The Karsund terminal cost 212 million euros."
PRICE = "It cost 221 million euros."
ABOUT_THE_CONVERSATION = (
    "You asked whether the terminal cost 221 million euros.",
    "The user has asked whether the terminal cost 221 million euros.",
    "Your question names a price of 221 million euros.",
    "We reported that the terminal cost 221 million euros.",
    "My first answer gave 221 million euros for the terminal.",
    "The previous report gave 221 million euros for the terminal.",
    "Sie fragten, ob das Terminal 221 Millionen Euro gekostet hat.",
    "Im vorigen Bericht stand, dass das Terminal 221 Millionen Euro gekostet hat.",
    "Vous avez demandé si le terminal a coûté 221 millions d'euros.",
    "La réponse précédente donnait 221 millions d'euros pour le terminal.",
    "En la respuesta anterior el terminal costó 221 millones de euros.",
    "Avete chiesto se il terminal è costato 221 milioni di euro.",
    "Você perguntou se o terminal custou 221 milhões de euros.",
    "U vroeg of de terminal 221 miljoen euro heeft gekost.",
    "Poprzedni raport podał 221 milionów euro za terminal.",
    "Вы спросили, стоил ли терминал 221 миллион евро.",
    "您问的是该码头是否耗资2.21亿欧元。",
    "上次的报告说码头耗资2.21亿欧元。",
    "ご質問では、ターミナルの費用は2億2100万ユーロでした。",
    "질문하신 터미널 비용은 2억 2100만 유로입니다.",
)


async def check_with(asked: str = "", *answers: str) -> ReportCheck:
    record = MemoryEvidence()
    await record.add("https://line.test/", "The Karsund line", "page", LINE)
    return await ReportCheck.of(record, [asked], said=TeamTexts(answers=answers), researched=True)


async def kind_of(text: str, asked: str = "", *answers: str) -> str:
    check = await check_with(asked, *answers)
    [claim] = (await check.claim_report([f"{text}\n"])).claims
    return claim.verdict.kind


@pytest.mark.parametrize("text", ABOUT_THE_CONVERSATION)
async def test_a_claim_about_the_conversation_is_never_marked(text: str):
    assert find_said_clauses(text)
    assert await kind_of(text) == "open"
    assert await kind_of(text, PRICE) == "exempt"
    assert await kind_of(text, "", PRICE) == "exempt"


@pytest.mark.parametrize(
    "text",
    [
        "The terminal of Karsund cost 221 million euros [1].",
        "The annual report said that the Karsund terminal cost 221 million euros [1].",
        "The previous report by the ministry gave 221 million euros for the Karsund terminal.",
        "The previous report gave 221 million euros for the Karsund terminal [1].",
        "“We reported 221 million euros for the Karsund terminal”, said the board [1].",
        "My first answer was wrong: the Karsund terminal cost 221 million euros [1].",
        "You asked for the price, but the Karsund terminal cost 221 million euros [1].",
        "Der Jahresbericht sagt, das Karsund Terminal kostete 221 Millionen Euro [1].",
    ],
)
async def test_what_others_have_said_and_what_follows_is_about_the_world(text: str):
    assert await kind_of(text) == "contradicted"


async def test_what_is_said_of_the_world_beside_it_is_supported():
    text = "My first answer gave 221 million euros; the Karsund terminal cost 212 million euros [1]."
    assert await kind_of(text, "", PRICE) == "supported"
