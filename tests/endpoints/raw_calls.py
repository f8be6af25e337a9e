"""Tool calls: native ones in odd pieces, and those that models write into their text."""

import json
from typing import Any

from tests.endpoints.server_framing import (
    CODE,
    DEEPSEEK,
    GEMINI,
    GROQ,
    KIMI,
    LITELLM,
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    QWEN,
    SGLANG,
    VLLM,
    Framing,
    RawOutput,
    dump,
    json_reply,
    pieces,
)
from tests.openai_server import Json, reply

_TOOL = "python_repl_tool"
_ARGUMENTS = dump({"code": CODE})
_CALL = dump({"name": _TOOL, "arguments": {"code": CODE}})
_PARAMETERS = dump({"name": _TOOL, "parameters": {"code": CODE}})
_DONE = reply("20 + 22 = 42")


def _row(form: str, server: str, first: Json, **more: Any) -> RawOutput:
    role = more.pop("role", "coder")
    return RawOutput(
        form, "calls", server, role, more.pop("outcome", "the call runs"), (first, _DONE), **more
    )


def _text(form: str, server: str, framing: Framing, text: str, **more: Any) -> RawOutput:
    return _row(form, server, framing.text(text), **more)


def _call(arguments: Any = _ARGUMENTS, name: str | None = _TOOL, **fields: Any) -> Json:
    """Return one whole call of a delta."""
    whole = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return {key: value for key, value in {**whole, **fields}.items() if value != "absent"}


def _calls(*calls: Json) -> Json:
    return {"tool_calls": list(calls)}


def _piece(text: str, index: int = 0, **fields: Any) -> Json:
    return _calls({"index": index, "function": {"arguments": text}, **fields})


_SIGNATURE = {"google": {"thought_signature": "c2ln"}}


def _refuse_unsigned(sent: Json) -> str | Json:
    calls = [call for one in sent["messages"] for call in one.get("tool_calls") or ()]
    if all(call.get("extra_content") == _SIGNATURE for call in calls):
        return ""
    message = "Function call is missing a thought_signature in functionCall parts."
    return json_reply([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}], 400)


_TWO = {
    "calls": (("python_repl_tool", {"code": CODE}), ("python_repl_tool", {"code": "print(7)"})),
    "results": ("42", "7"),
}
_SECOND = dump({"code": "print(7)"})

CALLS_ROWS: tuple[RawOutput, ...] = (
    # Native.
    _row(
        "native, in pieces",
        "vLLM",
        VLLM.stream(
            _calls({"id": "chatcmpl-tool-1", "type": "function", "index": 0, "function": {"name": _TOOL}}),
            *map(_piece, pieces(_ARGUMENTS)),
            finish="tool_calls",
        ),
    ),
    _row("native, whole, `stop` as reason", "Ollama", OLLAMA.stream({"content": "", **_calls(_call())})),
    _row(
        "without `index`, id empty",
        "Gemini",
        GEMINI.stream(_calls(_call(index="absent", id=""))),
    ),
    _row(
        "two calls, both `index` 0",
        "Gemini",
        GEMINI.stream(_calls(_call(id="a")), _calls(_call(_SECOND, id="b")), finish="tool_calls"),
        expects=_TWO,
        outcome="both calls run",
    ),
    _row(
        "two calls, in pieces by turns",
        "OpenAI",
        OPENAI.stream(
            _calls(_call("", id="a")),
            _calls(_call("", id="b", index=1)),
            _piece(_ARGUMENTS[:9]),
            _piece(_SECOND[:5], 1),
            _piece(_SECOND[5:], 1),
            _piece(_ARGUMENTS[9:]),
            finish="tool_calls",
        ),
        expects=_TWO,
        outcome="both calls run",
    ),
    _row(
        "name and id in every piece",
        "LiteLLM",
        LITELLM.stream(
            *(_calls(_call(part)) for part in (_ARGUMENTS[:7], _ARGUMENTS[7:])), finish="tool_calls"
        ),
    ),
    _row(
        "`id` and `name` null, then empty",
        "Qwen",
        QWEN.stream(
            _calls(_call("")),
            *(_calls(_call(part, name="", id="")) for part in pieces(_ARGUMENTS)),
            finish="tool_calls",
        ),
    ),
    _row(
        "arguments as an object",
        "llama.cpp",
        LLAMA_CPP.stream(_calls(_call({"code": CODE})), finish="tool_calls"),
    ),
    _row(
        "arguments encoded twice",
        "vLLM",
        VLLM.stream(_calls(_call(json.dumps(_ARGUMENTS))), finish="tool_calls"),
    ),
    _row(
        "arguments with a raw line end",
        "SGLang",
        SGLANG.stream(_calls(_call('{"code": "x = 20\nprint(x + 22)"}')), finish="tool_calls"),
        expects={"calls": ((_TOOL, {"code": "x = 20\nprint(x + 22)"}),)},
    ),
    _row(
        "arguments in a fence",
        "OpenRouter",
        OPENROUTER.stream(_calls(_call(f"```json\n{_ARGUMENTS}\n```")), finish="tool_calls"),
    ),
    _row(
        "name with a control mark",
        "vLLM",
        VLLM.stream(_calls(_call(name=f"{_TOOL}<|channel|>commentary")), finish="tool_calls"),
    ),
    _row(
        "name with `functions.`",
        "SGLang",
        SGLANG.stream(_calls(_call(name=f"functions.{_TOOL}")), finish="tool_calls"),
    ),
    _row(
        "name with spaces around",
        "LM Studio",
        LM_STUDIO.stream(_calls(_call(name=f" {_TOOL}\n")), finish="tool_calls"),
    ),
    _row(
        "legacy `function_call`",
        "LiteLLM",
        LITELLM.stream(
            {"function_call": {"name": _TOOL, "arguments": ""}},
            *({"function_call": {"arguments": part}} for part in pieces(_ARGUMENTS)),
            finish="function_call",
        ),
    ),
    _row(
        "in one JSON body",
        "llama.cpp",
        LLAMA_CPP.whole({"content": None, "tool_calls": [_call(index="absent")]}, "tool_calls"),
    ),
    _row(
        "`arguments` empty: no arguments",
        "Groq",
        GROQ.stream(_calls(_call("", "handoff_to_planner")), finish="tool_calls"),
        role="coordinator",
        outcome="the request is handed over",
    ),
    _row(
        "the same call also as text",
        "LM Studio",
        LM_STUDIO.stream(
            {"content": f"<tool_call>{_CALL}</tool_call>"}, _calls(_call()), finish="tool_calls"
        ),
        outcome="it runs once",
    ),
    _row(
        "a signature of thoughts, which is wanted back",
        "Gemini",
        GEMINI.stream(_calls(_call(extra_content=_SIGNATURE)), finish="tool_calls"),
        refuse=_refuse_unsigned,
    ),
    # In the text.
    _text(
        "`<tool_call>` after a sentence", "vLLM", VLLM, f"I compute it.\n\n<tool_call>\n{_CALL}\n</tool_call>"
    ),
    _text("`<tool_call>` that never ends", "Ollama", OLLAMA, f"<tool_call>\n{_CALL}\n"),
    _text(
        "two `<tool_call>`",
        "Qwen",
        VLLM,
        f"<tool_call>\n{_CALL}\n</tool_call>\n<tool_call>\n"
        f'{{"name": "{_TOOL}", "arguments": {_SECOND}}}\n</tool_call>',
        expects=_TWO,
        outcome="both calls run",
    ),
    _text(
        "`<function=…><parameter=…>`",
        "Qwen",
        LM_STUDIO,
        f"<tool_call>\n<function={_TOOL}>\n<parameter=code>\n{CODE}\n</parameter>\n</function>\n</tool_call>",
    ),
    _text(
        "`<function=…>` without `<tool_call>`",
        "Qwen",
        LLAMA_CPP,
        f"I run it.\n<function={_TOOL}>\n<parameter=code>\n{CODE}\n</parameter>\n</function>\n</tool_call>",
    ),
    _text(
        "`<function=name>{…}</function>` (Llama)", "vLLM", VLLM, f"<function={_TOOL}>{_ARGUMENTS}</function>"
    ),
    _text(
        "`<seed:tool_call>`",
        "vLLM",
        VLLM,
        f"<seed:tool_call>\n<function={_TOOL}>\n<parameter=code>{CODE}</parameter>\n</function>\n</seed:tool_call>",
    ),
    _text("`[TOOL_CALLS]name[ARGS]`", "Mistral", VLLM, f"[TOOL_CALLS]{_TOOL}[ARGS]{_ARGUMENTS}"),
    _text("`[TOOL_CALLS][{…}]`", "Mistral", OLLAMA, f"[TOOL_CALLS] [{_CALL}]"),
    _text("`<|python_tag|>` (Llama)", "vLLM", VLLM, f"<|python_tag|>{_PARAMETERS}"),
    _text("bare JSON with `parameters` (Llama)", "Ollama", OLLAMA, _PARAMETERS),
    _text("a fence of JSON", "LM Studio", LM_STUDIO, f"I call the tool.\n\n```json\n{_CALL}\n```"),
    _text("a list of JSON calls (xLAM)", "vLLM", VLLM, f"[{_CALL}]"),
    _text("`[name(argument=…)]` (Llama 4)", "vLLM", VLLM, f'[{_TOOL}(code="{CODE}")]'),
    _text(
        "`<|tool_call_start|>[…]` (LFM2)",
        "llama.cpp",
        LLAMA_CPP,
        f'<|tool_call_start|>[{_TOOL}(code="{CODE}")]<|tool_call_end|>',
    ),
    _text(
        "`tool▁calls▁begin` with a fence (V3)",
        "DeepSeek",
        DEEPSEEK,
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{_TOOL}\n```json\n{_ARGUMENTS}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    _text(
        "`tool▁calls▁begin` (V3.1)",
        "DeepSeek",
        DEEPSEEK,
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{_TOOL}<｜tool▁sep｜>{_ARGUMENTS}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
    ),
    _text(
        "`DSML` calls (V3.2)",
        "DeepSeek",
        SGLANG,
        f'I compute.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="{_TOOL}">\n'
        f'<｜DSML｜parameter name="code" string="true">{CODE}</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
    ),
    _text(
        "`DSML` without its block (V4)",
        "DeepSeek",
        SGLANG,
        f'<｜DSML｜invoke name="{_TOOL}">\n<｜DSML｜parameter name="code" string="true">{CODE}</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>",
    ),
    _text(
        "`tool_call_argument_begin`",
        "Kimi",
        KIMI,
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{_TOOL}:0<|tool_call_argument_begin|>{_ARGUMENTS}"
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    _text(
        "`<arg_key>`, `<arg_value>` (GLM)",
        "SGLang",
        SGLANG,
        f"<tool_call>{_TOOL}\n<arg_key>code</arg_key>\n<arg_value>{CODE}</arg_value>\n</tool_call>",
    ),
    _text(
        "`<minimax:tool_call>`",
        "vLLM",
        VLLM,
        f'<minimax:tool_call>\n<invoke name="{_TOOL}">\n<parameter name="code">{CODE}</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
    ),
    _text(
        "`<function_calls><invoke>` (Claude)",
        "LiteLLM",
        LITELLM,
        f'I run it.\n\n<function_calls>\n<invoke name="{_TOOL}">\n<parameter name="code">{CODE}</parameter>\n'
        "</invoke>\n</function_calls>",
    ),
    _text(
        "harmony `commentary to=…`",
        "LM Studio",
        LM_STUDIO,
        "<|channel|>analysis<|message|>SECRET: a sum.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.{_TOOL} <|constrain|>json<|message|>{_ARGUMENTS}<|call|>",
    ),
    _text(
        "harmony, receiver before the channel",
        "vLLM",
        VLLM,
        f"<|start|>assistant to=functions.{_TOOL}<|channel|>commentary json<|message|>{_ARGUMENTS}<|call|>",
    ),
    _text("harmony without its marks", "vLLM", VLLM, f"commentary to=functions.{_TOOL} json{_ARGUMENTS}"),
    _text(
        "harmony thoughts and call without marks",
        "vLLM",
        VLLM,
        f"analysisSECRET: a sum.assistantcommentary to=functions.{_TOOL} json{_ARGUMENTS}",
    ),
    _text(
        "`<|tool_call>call:…` (Gemma)",
        "vLLM",
        VLLM,
        f'<|tool_call>call:{_TOOL}{{code:<|"|>{CODE}<|"|>}}<tool_call|>',
    ),
    _text(
        "thoughts and call of Gemma",
        "Ollama",
        OLLAMA,
        f'<|channel>thought\nSECRET.\n<channel|><|tool_call>call:{_TOOL}{{code:<|"|>{CODE}<|"|>}}<tool_call|>',
    ),
    _text("`tool_code` in a fence (Gemma)", "Ollama", OLLAMA, f'```tool_code\n{_TOOL}(code="{CODE}")\n```'),
    _text("`<|tool_call|>[…]<|/tool_call|>` (Phi)", "vLLM", VLLM, f"<|tool_call|>[{_CALL}]<|/tool_call|>"),
    _text("`<|tool_call|>[…]` (Granite)", "vLLM", VLLM, f"<|tool_call|>[{_CALL}]"),
    _text("`<TOOLCALL>[…]` (Nemotron)", "vLLM", VLLM, f"<TOOLCALL>[{_CALL}]</TOOLCALL>"),
    _text("`<tool_calls>[…]` (Jamba, Hunyuan)", "vLLM", VLLM, f"<tool_calls>[\n{_CALL}\n]</tool_calls>"),
    _text(
        "`<|START_ACTION|>` (Command)",
        "vLLM",
        VLLM,
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "{_TOOL}", "parameters": {_ARGUMENTS}}}]<|END_ACTION|>',
    ),
    _text(
        "`<|action_start|>` (InternLM)",
        "SGLang",
        SGLANG,
        f"I run it.<|action_start|><|plugin|>\n{_PARAMETERS}<|action_end|>",
    ),
    _text(
        "`Action:`, `Action Input:`",
        "Ollama",
        OLLAMA,
        f"Thought: I compute it.\nAction: {_TOOL}\nAction Input: {_ARGUMENTS}\n",
    ),
    _text(
        "`<think>`, then a call",
        "Qwen",
        VLLM,
        f"<think>\nSECRET: a sum.\n</think>\n\n<tool_call>\n{_CALL}\n</tool_call>",
    ),
    _row(
        "at the end of `reasoning_content`",
        "vLLM",
        VLLM.stream({"reasoning_content": f"SECRET: a sum.\n<tool_call>\n{_CALL}\n</tool_call>"}),
    ),
    _text(
        "in a `<think>` that never ends",
        "Ollama",
        OLLAMA,
        f"<think>\nSECRET: a sum.\n<tool_call>\n{_CALL}\n</tool_call>",
    ),
)
