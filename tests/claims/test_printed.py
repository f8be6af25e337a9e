"""Figures in what a program of the run has printed."""

import json

import pytest

from maniple.claims.report_check import ReportCheck, TeamTexts
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

OUTPUTS = {
    "lines": "1974: 17.1 %\n1975: 18.2 %\n1976: 20.6 %\n",
    "frame": "   year  share\n0  1974   17.1\n1  1975   18.2\n2  1976   20.6\n",
    "table": "| year | share |\n|---|---|\n| 1974 | 17.1 |\n| 1975 | 18.2 |\n| 1976 | 20.6 |\n",
}
TOWNS = "Lindham   987500\nHarwick  1214000\n"


async def kind_of(text: str, *results: str) -> list[str]:
    check = await ReportCheck.of(MemoryEvidence(), results=results)
    return [claim.verdict.kind for claim in (await check.claim_report([text])).claims]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("In 1975 the share was 20.6 %.", "contradicted"),
        ("1976 lag der Anteil bei 18,2 %.", "contradicted"),
        ("In 1975 the share was 18.2 %.", "supported"),
        ("In 1976 the share was 20.6 %.", "supported"),
        ("From 1975 to 1976 the share rose to 20.6 %.", "supported"),
        ("The share reached 20.6 %.", "supported"),
    ],
)
async def test_a_figure_of_another_row_is_found(output: str, text: str, kind: str):
    assert await kind_of(text, OUTPUTS[output]) == [kind]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Lindham had 1,214,000 passengers.", "contradicted"),
        ("Lindham had 987,500 passengers.", "supported"),
        ("The busier route had 1,214,000 passengers.", "supported"),
        ("Lindham had fewer passengers than Harwick with 1,214,000.", "supported"),
    ],
)
async def test_rows_are_also_told_by_words(text: str, kind: str):
    assert await kind_of(text, TOWNS) == [kind]


async def test_a_row_of_another_output_is_no_objection():
    assert await kind_of("In 1975 the share was 20.6 %.", "1976: 20.6 %\n", "1975: 18.2 %\n") == ["supported"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Together they carried 420.8 tonnes.", "contradicted"),
        ("Together they carried 402.8 tonnes.", "supported"),
        ("The trip took 97.25 minutes, and not 92.75.", "open"),
        ("The mean was 97.25 minutes.", "contradicted"),
        ("It was 31.25 minutes late.", "open"),
    ],
)
async def test_a_figure_that_its_author_has_told_wrongly_is_found(text: str, kind: str):
    said = TeamTexts(answers=["It is 420.8 in all, 97.25 and 31.25 on average."])
    results = ["total 402.8\nmean 92.75\n"]
    check = await ReportCheck.of(MemoryEvidence(), results=results, said=said)
    assert [claim.verdict.kind for claim in (await check.claim_report([text])).claims] == [kind]


FRAME = (
    "          name  length  cost\n0  Tolm Bridge     412  18.5\n1 Orvik Bridge     287  12.9\n"
    "2 Lindham Pier     641  33.7\n"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The Orvik Bridge is 412 metres long.", "contradicted"),
        ("The Orvik Bridge is 287 metres long.", "supported"),
        ("Orvik Bridge is shorter than the pier with 641 metres.", "supported"),
    ],
)
async def test_a_word_that_several_rows_share_names_none_of_them(text: str, kind: str):
    assert await kind_of(text, FRAME) == [kind]


async def test_a_program_may_leave_out_the_scale():
    assert await kind_of("Orvik cost 12.9 million euros.", "Tolm cost 18.5\nOrvik cost 12.9\n") != [
        "contradicted"
    ]


ROWS = [("Tolm Bridge", 412, 18.5), ("Orvik Bridge", 287, 12.9), ("Lindham Pier", 641, 33.7)]
RECORDS = [{"name": name, "length": length, "cost": cost} for name, length, cost in ROWS]
LENGTHS = {name: length for name, length, _ in ROWS}
PRINTED = {
    "json": json.dumps(RECORDS),
    "indented json": json.dumps(RECORDS, indent=2),
    "lines of json": "\n".join(map(json.dumps, RECORDS)),
    "json by name": json.dumps({one["name"]: one for one in RECORDS}, indent=2),
    "json in json": json.dumps({"count": 3, "bridges": RECORDS}, indent=2),
    "json by column": json.dumps({key: [one[key] for one in RECORDS] for key in RECORDS[0]}),
    "json with a head": json.dumps([[*RECORDS[0]], *ROWS]),
    "pairs": json.dumps(LENGTHS),
    "python": f"Result: {RECORDS}",
    "tuples": repr(ROWS),
    "labelled": "\n".join(f"{one['name']}: {one}" for one in RECORDS),
    "fields": "\n".join(f"{name}: length {length}, cost {cost}" for name, length, cost in ROWS),
    "assignments": "\n".join(f"{name}: length={length} cost={cost}" for name, length, cost in ROWS),
    "one line": "; ".join(f"{name} {length} {cost}" for name, length, cost in ROWS),
    "one line of pairs": ", ".join(f"{name}: {length}" for name, length in LENGTHS.items()),
    "blocks": "\n".join(f"{name}\n  length: {length}\n  cost: {cost}" for name, length, cost in ROWS),
    "yaml": "\n".join(f"- name: {name}\n  length: {length}\n  cost: {cost}" for name, length, cost in ROWS),
    "csv": "name,length\n" + "\n".join(f"{name},{length}" for name, length in LENGTHS.items()),
}


@pytest.mark.parametrize("form", PRINTED)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The Orvik Bridge is 412 metres long.", "contradicted"),
        ("The Tolm Bridge is 641 metres long.", "contradicted"),
        ("The Orvik Bridge is 287 metres long.", "supported"),
        ("Orvik Bridge is shorter than the pier with 641 metres.", "supported"),
        ("Three were built; the longest has 641 metres.", "supported"),
    ],
)
async def test_a_figure_belongs_to_its_row_in_each_form_of_output(form: str, text: str, kind: str):
    assert await kind_of(text, f"{PRINTED[form]}\n") == [kind]
