"""Which files a text promises, and which an answer says to have written."""

import pytest

from maniple.agents.deliverables import (
    find_claimed_files,
    find_file_names,
    find_files_to_write,
    is_among,
)


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
        ("Saved as `Makefile`.", ["Makefile"]),
        ("Created the class `Printer`.", []),
    ],
)
def test_claims_are_links_and_what_is_said_to_be_written(answer, names):
    assert find_claimed_files(answer) == names


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("Write the trip as trip.docx.", ["trip.docx"]),
        ("Plan a trip as trip.docx", ["trip.docx"]),
        ("Could you save it as `my trip.docx`, please?", ["my trip.docx"]),
        ("Read data.csv and save the totals in out/totals.xlsx", ["out/totals.xlsx"]),
        ("Create a.csv and b.csv from the table.", ["a.csv", "b.csv"]),
        ("Compute the sum of sales.csv, then write it to sum.txt.", ["sum.txt"]),
        ("Summarise report.pdf and write the summary to summary.md", ["summary.md"]),
        ("Convert a.md to b.docx", ["b.docx"]),
        ("Find the cities that have trams and write the list to trams.csv", ["trams.csv"]),
        ("Erstelle eine Datei bericht.pdf aus daten.csv", ["bericht.pdf"]),
        ("Die Summe in summe.txt speichern", ["summe.txt"]),
        ("Lies daten.csv und schreibe das Mittel nach mittel.txt", ["mittel.txt"]),
        ("Écris le résumé de notes.md dans resume.md", ["resume.md"]),
        ("把结果保存为 结果.txt 和 result.csv", ["结果.txt", "result.csv"]),
        ("读取 data.csv，生成 chart.png", ["chart.png"]),
        ("Guarda la tabla en ventas.csv", ["ventas.csv"]),
        ("把行程写入trip.docx，并生成一个名为plan.pdf的文件", ["trip.docx", "plan.pdf"]),
        ("请写入报告.docx", ["报告.docx"]),
        ("Write the file with the name trip.docx", ["trip.docx"]),
        ("Rename a.txt to b.txt and zip everything into all.zip", ["b.txt", "all.zip"]),
        ("Erzeuge aus a.md eine b.docx", ["b.docx"]),
        ("Write a program main.py that reads data.csv and writes out.json", ["main.py"]),
        ("Enregistre le tableau sous table.ods.", ["table.ods"]),
        ("根据data.csv画图", []),
        ("Write a letter as in template.docx", []),
        ("Write a function that writes out.json", []),
        ("Move a.txt", []),
        ("Move a.txt to archive/a.txt", ["archive/a.txt"]),
        ("Copy notes.md into backup/notes.md, then delete old.md", ["backup/notes.md"]),
        ("Kopiere a.csv nach b.csv", ["b.csv"]),
        ("Save it as a `Makefile` and a `docker/Dockerfile`.", ["Makefile", "docker/Dockerfile"]),
        ("Write a `Reporter` class.", []),
        ("Write it like example.docx", []),
        ("Read notes.md and answer.", []),
        ("Read data.csv and draw a chart of the sales.", []),
        ("What is in report.pdf? See report.md.", []),
        ("Make a chart from prices.csv", []),
        ("Write a summary of https://e.test/a/paper.pdf", []),
        ("Explain how to write config.yaml", []),
        ("Erkläre, wie man out.csv schreibt", []),
        ("解释如何写入 out.csv", []),
        ("Do not create out.csv, only show the table.", []),
        ("If rows are missing, list them in missing.csv", []),
        ("Write an essay about Node.js and e.g. Vue.js", []),
        ("Analyse data.csv with pandas", []),
        ("Vergleiche a.csv und b.csv", []),
    ],
)
def test_a_task_asks_to_write_some_files_and_only_reads_others(task, names):
    assert find_files_to_write(task) == names


@pytest.mark.parametrize(
    "answer",
    [
        "The file out.json is created when you run it.",
        "The script writes out.json.",
        "I could not write trip.docx; nothing was saved.",
        "Die Datei trip.docx wurde nicht erstellt.",
        "Le fichier trip.docx n'a pas été créé.",
        "trip.docx 没有保存。",
        "You can have the table exported as out.csv.",
        "data.csv does not exist.",
        "```\nsaved out.csv\n```\nThat is what it prints.",
    ],
)
def test_what_is_denied_or_only_possible_is_no_claim(answer):
    assert find_claimed_files(answer) == []
