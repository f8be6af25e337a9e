"""Plans in the wrappings in which models put them."""

import json
from typing import Any

from tests.endpoints.server_framing import (
    LITELLM,
    LLAMA_CPP,
    LM_STUDIO,
    MISTRAL,
    OLLAMA,
    OPENAI,
    PLAN,
    QWEN,
    SCRIPT,
    SGLANG,
    STEPS,
    VLLM,
    RawOutput,
    dump,
)
from tests.openai_server import Json

_PLAN = json.dumps(PLAN)
_PRETTY = json.dumps(PLAN, indent=2)


def _row(form: str, server: str, reply: Json, **more: Any) -> RawOutput:
    return RawOutput(
        form,
        "plans",
        server,
        more.pop("role", "planner"),
        more.pop("outcome", "the plan is done"),
        (reply, *more.pop("then", ())),
        **more,
    )


def _with(**changes: Any) -> Json:
    return {**PLAN, **changes}


_ALIASED = [
    {"agent": step["agent_name"], "title": step["title"], "task": step["description"]} for step in STEPS
]
_LOUD = [{**step, "agent_name": f"{step['agent_name'].title()} Agent"} for step in STEPS]
_PYTHON = str(PLAN)
_LOOSE = _PRETTY.replace('"title": "20 + 22",', '"title": "20 + 22", // the sum').replace(
    "\n  ]\n}", ",\n  ],\n}"
)

PLANS: tuple[RawOutput, ...] = (
    _row("in a fence", "Ollama", OLLAMA.text(f"Here is the plan:\n\n```json\n{_PRETTY}\n```\n")),
    _row(
        "after `{team}` and `[1]`, before `[2]`",
        "vLLM",
        VLLM.text(f"As asked [1], for {{team}}:\n\n```json\n{_PLAN}\n```\n\nSee [2]."),
    ),
    _row("between sentences, no fence", "Mistral", MISTRAL.text(f"The plan is {_PLAN} and that is all.")),
    _row("wrapped in `plan`", "Qwen", QWEN.text(dump({"plan": PLAN}))),
    _row("wrapped in `content`", "LM Studio", LM_STUDIO.text(dump({"role": "assistant", "content": PLAN}))),
    _row("encoded twice", "SGLang", SGLANG.text(json.dumps(_PLAN))),
    _row("a list of steps alone", "Ollama", OLLAMA.text(dump(list(STEPS)))),
    _row("a list with the plan", "llama.cpp", LLAMA_CPP.text(dump([PLAN]))),
    _row("`agent` and `task`", "Qwen", QWEN.text(dump(_with(steps=_ALIASED)))),
    _row("`Coder Agent`", "vLLM", VLLM.text(dump(_with(steps=_LOUD)))),
    _row(
        "more keys than asked for",
        "Mistral",
        MISTRAL.text(
            dump(
                {
                    "$schema": "x",
                    **_with(steps=[{"id": 7, "depends": [], **step} for step in STEPS]),
                    "confidence": 0.9,
                }
            )
        ),
    ),
    _row("a dictionary of Python", "Ollama", OLLAMA.text(_PYTHON)),
    _row("comments and commas too many", "LM Studio", LM_STUDIO.text(_LOOSE)),
    _row(
        "a raw line end in a string",
        "llama.cpp",
        LLAMA_CPP.text(_PLAN.replace("with Python.", "with Python.\\nExactly.").replace("\\n", "\n")),
    ),
    _row("in `<answer>`", "vLLM", VLLM.text(f"<answer>\n{_PLAN}\n</answer>")),
    _row(
        "in `<|channel|>final`",
        "LM Studio",
        LM_STUDIO.text(
            f"<|channel|>analysis<|message|>SECRET<|end|><|start|>assistant<|channel|>final<|message|>{_PLAN}<|return|>"
        ),
    ),
    _row(
        "as the call of a tool",
        "LiteLLM",
        LITELLM.stream(
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "c",
                        "type": "function",
                        "function": {"name": "json_tool_call", "arguments": _PLAN},
                    }
                ]
            },
            finish="tool_calls",
        ),
    ),
    _row("the end of the JSON is missing", "vLLM", VLLM.text(_PLAN[:-2])),
    _row(
        "an example first, then the plan",
        "Qwen",
        QWEN.text(f'A step looks like {{"agent_name": "…"}}.\n\n{_PLAN}'),
    ),
    _row("pretty, in one body", "OpenAI", OPENAI.whole({"content": _PRETTY})),
    _row(
        "no JSON; asked again",
        "Ollama",
        OLLAMA.text("I would add the numbers and report."),
        then=(OLLAMA.text(_PLAN),),
        outcome="asked again, then the plan is done",
    ),
    _row(
        "the coordinator writes the plan",
        "Qwen",
        QWEN.text(f"```json\n{_PRETTY}\n```"),
        role="coordinator",
        then=(SCRIPT["coordinator"][0],),
        outcome="it is handed over, no JSON is shown",
    ),
)
