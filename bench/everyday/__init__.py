"""Everyday questions for the embedded model: `python -m bench.everyday`."""

from pathlib import Path

from platformdirs import user_cache_path

from bench.everyday.asking import ask_all
from bench.everyday.questions import QUESTIONS
from maniple.llms.embedded.model_file import QWEN_CODER


async def measure() -> dict[str, float]:
    """Return how many of twenty questions the embedded model answers right without a network.

    Nothing is measured, and nothing fetched, where the model's file is not there.
    """
    folder = Path(user_cache_path("maniple", appauthor=False)) / "models"
    if not (folder / QWEN_CODER.name).exists():
        return {}
    outcomes = await ask_all(QUESTIONS, network=False, report=False)
    return {"everyday_right": sum(one.is_right for one in outcomes)}
