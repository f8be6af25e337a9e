"""Ask the team many questions, some at the same time, within a budget for each and one for all.

    python examples/hundred_questions.py questions.csv answers.csv --total-tokens 2000000

`questions.csv` has a column `question`; `answers.csv` gets question, status, tokens and answer. No run begins
whose budget does not fit into what is left of the total; a run may pass its own by one model call.
Start it again after a kill: what is answered is not asked again, runs that were cut off continue from their
checkpoints (`answers.csv.db`), and runs that failed do again what is missing.
"""

import argparse
import asyncio
import csv
import hashlib
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from maniple import ManipleError, RunOptions, Team, load_settings, open_team

COLUMNS: tuple[str, ...] = ("question", "status", "tokens", "answer")
NOBODY_ANSWERS = RunOptions(may_ask=False)
Row = dict[str, str]


async def main(arguments: argparse.Namespace) -> None:
    settings = load_settings()
    budget = settings.runs.budget.model_copy(update={"tokens": arguments.run_tokens})
    runs = settings.runs.model_copy(update={"budget": budget})
    rows = {row["question"]: row for row in read_rows(arguments.answers) if row["status"] != "failed"}
    questions = dict.fromkeys(row["question"] for row in read_rows(arguments.questions))
    waiting = [question for question in questions if question not in rows]
    working: set[asyncio.Task[Row]] = set()
    async with (
        AsyncSqliteSaver.from_conn_string(f"{arguments.answers}.db") as checkpoints,
        open_team(settings.model_copy(update={"runs": runs}), checkpointer=checkpoints) as team,
        asyncio.TaskGroup() as group,
    ):
        while waiting or working:
            spent = sum(int(row["tokens"]) for row in rows.values())
            affordable = (arguments.total_tokens - spent) // arguments.run_tokens
            while waiting and len(working) < min(arguments.at_once, affordable):
                working.add(group.create_task(ask(team, waiting.pop(0))))
            if not working:
                break
            done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for row in (task.result() for task in done):
                rows[row["question"]] = row
                print(f"{row['status']:18} {row['tokens']:>8} tokens  {row['question']}", flush=True)
            await asyncio.to_thread(write_rows, arguments.answers, list(rows.values()))
    print(f"{len(rows)} of {len(questions)} answered; {len(waiting)} do not fit into the budget.")


async def ask(team: Team, question: str) -> Row:
    """Begin the run of a question, or continue it, and return its row."""
    thread = hashlib.sha256(question.encode()).hexdigest()
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    known = (await team.aget_state(config)).values
    try:
        state = await team.ainvoke(
            None if known else {"messages": [HumanMessage(question)]}, config, context=NOBODY_ANSWERS
        )
        # It is unknown what a call did that a kill has cut off, and nobody is here to say "run again".
        while waits := state.get("__interrupt__"):
            answers = Command(resume={wait.id: "skip" for wait in waits})
            state = await team.ainvoke(answers, config, context=NOBODY_ANSWERS)
    except ManipleError as error:
        return {"question": question, "status": "failed", "tokens": "0", "answer": str(error)}
    last = state["messages"][-1]
    ended, usage = last.response_metadata["status"], last.response_metadata["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    return {"question": question, "status": ended, "tokens": str(tokens), "answer": last.text}


def read_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[Row]) -> None:
    """Replace the file as a whole: a kill leaves the one before or the one after."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    new.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask the team the questions of a CSV file.")
    parser.add_argument("questions", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--run-tokens", type=int, default=50_000)
    parser.add_argument("--total-tokens", type=int, default=2_000_000)
    asyncio.run(main(parser.parse_args()))
