"""An example capability: the researcher looks words up in `glossary.json` beside the program."""

import asyncio
import json
from pathlib import Path
from typing import ClassVar

from langchain_core.tools import BaseTool, StructuredTool

from maniple import Capability, CapabilityContext, Offer, ToolFailure, Unavailable

GLOSSARY = Path("glossary.json")


class DictionaryCapability(Capability):
    """Gives the researcher the tool `look_up`."""

    name: ClassVar = "dictionary"
    tools: ClassVar = ("look_up",)

    async def open(self, context: CapabilityContext) -> Offer:
        if not await asyncio.to_thread(GLOSSARY.is_file):
            missing = f"There is no {GLOSSARY} to look words up in."
            raise Unavailable(missing, f"create {GLOSSARY} beside conf.yaml.")
        definitions = json.loads(await asyncio.to_thread(GLOSSARY.read_text, encoding="utf-8"))
        return Offer(extra_tools={"researcher": [_look_up_tool(definitions)]})


def _look_up_tool(definitions: dict[str, str]) -> BaseTool:
    async def look_up(word: str) -> str:
        """Look up what a word means in the glossary of this company."""
        if word not in definitions:
            raise ToolFailure(f"The glossary has no entry for {word!r}.")
        return definitions[word]

    return StructuredTool.from_function(coroutine=look_up, metadata={"idempotent": True, "only_reads": True})
