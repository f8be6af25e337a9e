"""Answers with thoughts, and honest answers about the marks of thoughts and calls."""

from typing import Any

from tests.endpoints.server_framing import (
    CODE,
    DEEPSEEK,
    KIMI,
    LITELLM,
    LLAMA_CPP,
    LM_STUDIO,
    MISTRAL,
    OLLAMA,
    OPENROUTER,
    PLAN,
    REPORT,
    SGLANG,
    VLLM,
    RawOutput,
    dump,
    greets,
)
from tests.openai_server import Json, call, reply

_APART = "the thoughts are apart from the answer"


def _role(form: str, server: str, role: str, reply: Json, **more: Any) -> RawOutput:
    return RawOutput(form, "thoughts", server, role, more.pop("outcome", _APART), (reply,), **more)


def _says(form: str, server: str, reply: Json, answer: str) -> RawOutput:
    outcome = "stays text, character for character"
    question = "What do these marks mean?"
    return greets(
        form, server, reply, outcome=outcome, expects={"answer": answer}, hides=(), question=question
    )


_UNOPENED = "I think. SECRET.\n</think>\n\n"
_THINKERS: Json = {
    "coordinator": [{**call("handoff_to_planner"), "text": _UNOPENED}],
    "planner": [reply(_UNOPENED + dump(PLAN))],
    "coder": [{**call("python_repl_tool", code=CODE), "text": _UNOPENED}, reply(f"{_UNOPENED}20 + 22 = 42")],
}
"""One model for all roles: whoever closes thoughts once does it always."""
_ABOUT_THINK = (
    "Models write their thoughts so:\n\n```\n<think>\nI add.\n</think>\nThe sum is 42.\n```\n\nThe text after "
    "`</think>` is the answer."
)
_ABOUT_CALLS = (
    "Hermes models call a tool so:\n\n```xml\n<tool_call>\n"
    '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n```\n\nThe server parses it.'
)
_ABOUT_HARMONY = (
    "Each message of harmony names its channel:\n\n~~~\n<|channel|>analysis<|message|>I add.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>42<|return|>\n~~~\n\nOnly `<|channel|>final` is shown."
)
_ABOUT_ANALYSIS = (
    "analysis of variance compares the means of groups; the assistant's final word is the F test."
)
_IN_LINE = "The mark `</think>` closes the thoughts, `[TOOL_CALLS]` opens the calls of Mistral's models."

THOUGHTS: tuple[RawOutput, ...] = (
    greets(
        "`reasoning_content`",
        "DeepSeek",
        DEEPSEEK.stream(
            {"content": None, "reasoning_content": "SECRET: a"},
            {"content": None, "reasoning_content": " greeting."},
            {"content": "Hel", "reasoning_content": None},
            {"content": "lo!", "reasoning_content": None},
        ),
    ),
    greets(
        "`reasoning`",
        "Ollama",
        OLLAMA.stream(
            {"content": "", "reasoning": "SECRET: a"},
            {"content": "", "reasoning": " greeting."},
            {"content": "Hello!"},
        ),
    ),
    greets(
        "`<think>`, then `<answer>`", "vLLM", VLLM.text("<think>SECRET</think>\n<answer>\nHello!\n</answer>")
    ),
    greets(
        "the end of the turn in the text",
        "llama.cpp",
        LLAMA_CPP.text("<THINK>SECRET</THINK>Hello!<|im_end|>"),
    ),
    _role(
        "`reasoning_content` before a plan",
        "SGLang",
        "planner",
        SGLANG.stream(
            {"content": None, "reasoning_content": "SECRET:"},
            {"content": None, "reasoning_content": " a sum."},
            {"content": dump(PLAN), "reasoning_content": None},
        ),
        expects={"thoughts": {"planner": "SECRET: a sum."}},
    ),
    _role(
        "`reasoning` and `reasoning_details`",
        "OpenRouter",
        "planner",
        OPENROUTER.stream(
            {
                "content": "",
                "reasoning": "SECRET.",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "SECRET.", "format": "unknown", "index": 0}
                ],
            },
            {"content": dump(PLAN)},
        ),
        expects={"thoughts": {"planner": "SECRET."}},
    ),
    greets(
        "`<think>` in the text", "Ollama", OLLAMA.text("<think>\nSECRET: a greeting.\n</think>\n\nHello!")
    ),
    greets("empty `<think>`", "Qwen", VLLM.text("<think>\n\n</think>\n\nHello!")),
    greets("only `</think>`", "vLLM", VLLM.text("A greeting. SECRET.\n</think>\n\nHello!")),
    greets(
        "`</think>` first, after `reasoning_content`",
        "llama.cpp",
        LLAMA_CPP.stream({"reasoning_content": "SECRET"}, {"content": "</think>"}, {"content": "\n\nHello!"}),
    ),
    _role(
        "only `</think>`, before a plan",
        "SGLang",
        "planner",
        SGLANG.text('A sum. SECRET. Not {"steps": []}.\n</think>\n\n' + dump(PLAN)),
    ),
    _role(
        "only `</think>`, before the report",
        "vLLM",
        "reporter",
        VLLM.text(f"The report is short. SECRET.\n\n</think>\n\n{REPORT}"),
        script=_THINKERS,
    ),
    _role(
        "only `</think>`, before a result",
        "vLLM",
        "coder",
        VLLM.text("SECRET: no code needed.\n</think>\n\n20 + 22 = 42"),
        expects={"calls": (), "results": ()},
        script=_THINKERS,
    ),
    greets("`[THINK]`", "Mistral", VLLM.text("[THINK]A greeting. SECRET.[/THINK]Hello!")),
    greets(
        "content as a list of parts",
        "Mistral",
        MISTRAL.stream(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "SECRET: a"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": " greeting."}]}]},
            {"content": [{"type": "text", "text": "Hel"}]},
            {"content": "lo!"},
        ),
    ),
    greets("`◁think▷`", "Kimi", KIMI.text("◁think▷A greeting. SECRET.◁/think▷Hello!")),
    greets("`<seed:think>`", "vLLM", VLLM.text("<seed:think>A greeting. SECRET.</seed:think>Hello!")),
    greets("`<thinking>`", "LiteLLM", LITELLM.text("<thinking>\nA greeting. SECRET.\n</thinking>\n\nHello!")),
    greets(
        "`<|START_THINKING|>`",
        "vLLM",
        VLLM.text(
            "<|START_THINKING|>A greeting. SECRET.<|END_THINKING|><|START_RESPONSE|>Hello!<|END_RESPONSE|>"
        ),
    ),
    greets(
        "`<|channel>thought` (Gemma)",
        "vLLM",
        VLLM.text("<|channel>thought\nA greeting. SECRET.\n<channel|>Hello!"),
    ),
    greets(
        "harmony channels",
        "LM Studio",
        LM_STUDIO.text(
            "<|channel|>analysis<|message|>SECRET: a greeting.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"
        ),
    ),
    greets(
        "harmony channels, closed",
        "vLLM",
        VLLM.text(
            "<|channel|>analysis<|message|>SECRET.<|end|><|start|>assistant<|channel|>commentary<|message|>SECRET 2."
            "<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>"
        ),
    ),
    greets("harmony without its marks", "vLLM", VLLM.text("analysisA greeting. SECRET.assistantfinalHello!")),
    _role(
        "harmony without its marks, before the report",
        "llama.cpp",
        "reporter",
        LLAMA_CPP.text(f"analysisThe report is short. SECRET.assistantfinal{REPORT}"),
    ),
    _role(
        "harmony final channel with `<|constrain|>json`, a plan",
        "vLLM",
        "planner",
        VLLM.text(f"<|channel|>final <|constrain|>json<|message|>{dump(PLAN)}"),
    ),
    greets(
        "thoughts in one body", "llama.cpp", LLAMA_CPP.whole({"content": "<think>SECRET</think>\n\nHello!"})
    ),
    _says("an answer about `<think>`", "vLLM", VLLM.text(_ABOUT_THINK), _ABOUT_THINK),
    _says("an answer about `<tool_call>`", "Ollama", OLLAMA.text(_ABOUT_CALLS), _ABOUT_CALLS),
    _says("an answer about harmony", "LM Studio", LM_STUDIO.text(_ABOUT_HARMONY), _ABOUT_HARMONY),
    _says("an answer with marks in backticks", "Mistral", MISTRAL.text(_IN_LINE), _IN_LINE),
    _says("an answer that begins with `analysis`", "vLLM", VLLM.text(_ABOUT_ANALYSIS), _ABOUT_ANALYSIS),
)
