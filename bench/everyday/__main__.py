"""How many everyday questions the embedded model answers right.

`python -m bench.everyday [--held-out] [--network] [--only 3,7] [--transcript FILE]`: one line a question,
then the rate. Without `--network` the search is at an address where nobody answers; with it a search engine
on loopback takes the place of the web. Each question is asked in a conversation of its own, one by one.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.everyday.asking import ask_all
from bench.everyday.questions import HELD_OUT, QUESTIONS


def main() -> int:
    """Print each question's outcome, and the rate."""
    parser = argparse.ArgumentParser(prog="python -m bench.everyday", description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="the questions that nothing was made with")
    parser.add_argument("--network", action="store_true", help="with a search engine that answers")
    parser.add_argument("--only", help="the numbers of some questions, such as 3,7")
    parser.add_argument("--transcript", type=Path, help="a file for the answers, one JSON object a line")
    options = parser.parse_args()
    questions = HELD_OUT if options.held_out else QUESTIONS
    if options.only:
        questions = tuple(questions[int(number) - 1] for number in options.only.split(","))
    outcomes = asyncio.run(ask_all(questions, network=options.network))
    if options.transcript:
        lines = (json.dumps(asdict(one), ensure_ascii=False) for one in outcomes)
        options.transcript.write_text("\n".join(lines) + "\n")
    right = sum(one.is_right for one in outcomes)
    seconds = sorted(one.seconds for one in outcomes)[len(outcomes) // 2]
    print(f"right {right} of {len(outcomes)}, median {seconds} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
