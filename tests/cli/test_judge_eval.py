"""`maniple eval judge` over a labelled set and a scripted endpoint."""

import json
from pathlib import Path

import pytest

from maniple.cli.judge_eval import JudgeScore, describe_score, read_set
from maniple.cli.process import WrongUsage
from maniple.llms.judge_measurements import JudgeMeasurement
from tests.cli.processes import environment, maniple
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio

SOURCE = "# The bridge\n\nThe stone bridge was opened in 1932 by the king.\n"
RIGHT = {"report": "The bridge was opened by a king [1].", "label": "right", "kind": "who"}
WRONG = {"report": "The bridge was opened by a bishop [1].", "label": "wrong", "kind": "who"}


def make_set(folder: Path, *lines: object, source: str = SOURCE) -> Path:
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "1.md").write_text(source, encoding="utf-8")
    text = "\n".join(map(json.dumps, lines))
    (folder / "claims.jsonl").write_text(text, encoding="utf-8")
    return folder


def says(id: str, verdict: str) -> dict[str, str]:
    span = "opened in 1932 by the king"
    return {"id": id, "verdict": verdict, "pid": "p1", "span": span, "operation": "", "why": "the king"}


async def test_rates_are_printed_and_stored_and_shown_by_doctor(tmp_path: Path) -> None:
    labelled = make_set(tmp_path / "set", RIGHT, WRONG)
    answer = {"verdicts": [says("c1", "supported"), says("c2", "contradicted")]}
    cache = tmp_path / "cache"
    with serving({"judge": [reply(json.dumps(answer))]}) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_CACHE_DIR=str(cache))
        status, output, _ = await maniple(
            "eval", "judge", "--set", str(labelled), "--verbose", folder=tmp_path, env=env
        )
        checked = await maniple("doctor", "--json", "--no-build", folder=tmp_path, env=env)
    assert status == 0
    assert "0 of 1 = 0.0 %" in output
    assert "1 of 1 = 100.0 %" in output
    assert "calls: 1 for 2 parts" in output
    [stored] = json.loads((cache / "capabilities.json").read_text(encoding="utf-8")).values()
    counts = [stored["judge"][name] for name in ("honest", "false_marks", "wrong", "caught", "not_checked")]
    assert counts == [1, 0, 1, 1, 0]
    assert stored["judge"]["recall_interval"][0] < 0.5
    findings = {one["name"]: one for one in json.loads(checked[1])["checks"]}
    assert "300" in findings["evidence.judge"]["detail"]


async def test_verbose_names_each_mistake_and_each_claim_that_was_not_checked(tmp_path: Path) -> None:
    labelled = make_set(tmp_path / "set", RIGHT, WRONG)
    answer = {"verdicts": [says("c1", "contradicted"), {**says("c2", "supported"), "span": "by a queen"}]}
    with serving({"judge": [reply(json.dumps(answer))]}) as server:
        env = environment(tmp_path, server.base_url)
        _, output, _ = await maniple(
            "eval", "judge", "--set", str(labelled), "--verbose", folder=tmp_path, env=env
        )
    lines = output.splitlines()
    assert any("mistake of judge" in one and "a king" in one for one in lines)
    assert any("not checked: " in one and "bishop" in one and "word for word" in one for one in lines)


async def test_a_model_that_decides_nothing_is_not_stored(tmp_path: Path) -> None:
    labelled = make_set(tmp_path / "set", RIGHT, WRONG)
    cache = tmp_path / "cache"
    with serving({"judge": [reply("I cannot.")]}) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_CACHE_DIR=str(cache))
        status, _, _ = await maniple("eval", "judge", "--set", str(labelled), folder=tmp_path, env=env)
    assert status == 1
    assert "judge" not in "".join(path.read_text(encoding="utf-8") for path in cache.glob("*.json"))


@pytest.mark.parametrize("line", [{"report": "x", "label": "maybe"}, {"label": "right"}, [1], "x"])
def test_a_set_with_a_wrong_line_is_refused(line: object, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage):
        read_set(make_set(tmp_path / "set", line))


def test_a_set_without_claims_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage):
        read_set(make_set(tmp_path / "set"))


def test_a_set_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    folder = make_set(tmp_path / "set", RIGHT)
    for number in range(2, 12):
        (folder / "sources" / f"{number}.md").write_text(f"text {number}", encoding="utf-8")
    texts, [line] = read_set(folder)
    assert (len(texts), texts[9], texts[10]) == (11, "text 10", "text 11")
    assert line.label == "right"


def test_claims_and_parts_that_were_not_checked_are_counted_apart() -> None:
    score = JudgeScore()
    score.totals["right", "list"] = 2
    score.verdicts.update({("right", "not checked"): 3, ("right", "supported"): 1})
    found = JudgeMeasurement(2, 0, 0, 0, 1, "prompt", 0.0)
    described = describe_score(score, found)
    assert "was checked: 1" in described
    assert "parts not checked: 3" in described
