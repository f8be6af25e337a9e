"""Which files a text promises, and which an answer says to have written."""

import pytest

from maniple.agents.deliverables import find_claimed_files, find_file_names, is_among


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Write the plan to trip.docx.", ["trip.docx"]),
        (
            "Speichere die Tabelle als `out/preise 2026.xlsx` und zeichne chart.png",
            ["out/preise 2026.xlsx", "chart.png"],
        ),
        ("Enregistre le tableau dans « ventes.csv »", ["ventes.csv"]),
        ("Read /workspace/data.json", ["data.json"]),
        ("Save as ./a.md, b.md; c.md", ["a.md", "b.md", "c.md"]),
        ("Open https://a.test/index.html and mail to x@site.html", []),
        ("Explain Node.js, numpy.array and e.g. version 1.5", []),
        ("Read /etc/app/conf.json and ~/notes.md", []),
        ("Delete all *.csv, then data_{year}.csv", []),
        ("Fix this:\n```python\nopen('x.csv')\n```", []),
        ("Call pandas.json( or df.csv()", []),
    ],
)
def test_names_of_files_are_found_by_their_form(text, names):
    assert find_file_names(text) == names


def test_a_name_after_chinese_text_is_recognised_as_the_file_that_exists():
    (name,) = find_file_names("请把结果保存为trip.docx。")
    assert is_among(name, ["out/trip.docx"])
    (name,) = find_file_names("请写入报告.docx")
    assert is_among(name, ["报告.docx"])
    assert not is_among(name, ["other.docx", "x.csv"])


def test_a_file_counts_in_any_folder_and_case():
    assert is_among("trip.docx", ["out/Trip.DOCX"])
    assert is_among("report.xlsx", ["Q3 report.xlsx"])
    assert not is_among("trip.docx", ["mytrip.docx", "trip.doc"])


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("The table is saved as `out/x.csv`.", ["out/x.csv"]),
        ("![Sales](figures/sales.png) and [the data](data.csv)", ["figures/sales.png", "data.csv"]),
        ("See [the page](https://a.test/x.html), [above](#top) and [3]", []),
        ("Die Datei bericht.docx wurde erstellt.", ["bericht.docx"]),
        ("J'ai enregistré le résultat dans resultat.csv.", ["resultat.csv"]),
        ("结果已保存到 result.csv。", ["result.csv"]),
        ("The file data.csv has 3 columns.", []),
    ],
)
def test_claims_are_links_and_what_is_said_to_be_written(answer, names):
    assert find_claimed_files(answer) == names
