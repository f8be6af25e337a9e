"""Requests that endpoints refuse, in the words and with the bodies in which they do."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.endpoints.server_framing import CODE, SCRIPT, RawOutput, dump, json_reply
from tests.openai_server import Json, call, reply

_DONE = reply("20 + 22 = 42")
_LEARNED = "learned; the run completes"
_PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
_PICTURE = [
    {"type": "text", "text": "Compute 20 + 22 with Python, as in the picture."},
    {"type": "image", "image_url": _PIXEL},
]


def _row(form: str, server: str, is_bad: Callable[[Json], Any], answer: Json, **more: Any) -> RawOutput:
    refusals = ((is_bad, answer), *more.pop("also", ()))
    role, outcome = more.pop("role", "coder"), more.pop("outcome", _LEARNED)

    def refuse(sent: Json) -> str | Json:
        return next((answer for is_bad, answer in refusals if is_bad(sent)), "")

    return RawOutput(form, "refusals", server, role, outcome, refuse=refuse, **more)


def _openai(
    message: str,
    param: str | None = None,
    code: Any = None,
    status: int = 400,
    kind: str = "invalid_request_error",
    **headers: str,
) -> Json:
    return json_reply(
        {"error": {"message": message, "type": kind, "param": param, "code": code}}, status, **headers
    )


def _vllm(message: str, status: int = 400, kind: str = "BadRequestError") -> Json:
    return json_reply(
        {"object": "error", "message": message, "type": kind, "param": None, "code": status}, status
    )


def _llama_cpp(message: str, code: int = 500, kind: str = "server_error") -> Json:
    return json_reply({"error": {"code": code, "message": message, "type": kind}}, code)


def _has(name: str) -> Callable[[Json], bool]:
    return lambda sent: sent.get(name) is not None


def _roles(sent: Json) -> list[str]:
    return [one["role"] for one in sent["messages"]]


def _alternates(roles: list[str]) -> bool:
    return all(role == ("user", "assistant")[at % 2] for at, role in enumerate(roles))


def _not_alternating(sent: Json) -> bool:
    roles = _roles(sent)
    return "tool" not in roles and not _alternates(roles[1:] if roles[0] == "system" else roles)


def _forces_tool(sent: Json) -> bool:
    return sent.get("tool_choice") not in (None, "auto", "none")


def _wants_schema(sent: Json) -> bool:
    return (sent.get("response_format") or {}).get("type") == "json_schema"


def _lacks_text(sent: Json) -> bool:
    return any(not one.get("content") for one in sent["messages"])


def _pictures(sent: Json) -> bool:
    return '"image_url"' in json.dumps(sent["messages"])


def _schema_has(keyword: str) -> Callable[[Json], bool]:
    return lambda sent: f'"{keyword}"' in dump([sent.get("tools"), sent.get("response_format")])


def _lacks_reasoning(sent: Json) -> bool:
    return any(one.get("tool_calls") and not one.get("reasoning_content") for one in sent["messages"])


_TEXT_CALLS: Json = {
    "coordinator": [reply("handoff_to_planner()")],
    "coder": [
        reply(f"```json\n{dump({'name': 'python_repl_tool', 'arguments': {'code': CODE}})}\n```"),
        _DONE,
    ],
}
_THINKING = {**call("python_repl_tool", code=CODE), "reasoning": "I add."}
_NO_TOOLS = "tools are described in the prompt, and calls read from the text"
_WAITS = "asked again; the run completes"


def _fails(form: str, server: str, answer: Json, code: str, words: str) -> RawOutput:
    """Return a row of a refusal that nothing can be done about: the user reads the endpoint's words."""
    expects = {
        **{"status": "failed", "calls": (), "results": (), "members": (), "answer": re.compile(".")},
        "error": (code, re.compile(re.escape(words))),
    }
    return _row(
        form,
        server,
        lambda sent: True,
        answer,
        expects=expects,
        role="coordinator",
        outcome="the run fails in the endpoint's own words",
        settings={"MANIPLE_MODELS__BASIC__MAX_RETRIES": "0"},
    )


def _passes(form: str, server: str, *answers: Json, role: str = "coordinator") -> RawOutput:
    """Return a row of an error that ends by itself."""
    return RawOutput(form, "refusals", server, role, _WAITS, (*answers, *SCRIPT[role]))


REFUSALS: tuple[RawOutput, ...] = (
    _row(
        "`temperature` other than 1",
        "OpenAI",
        lambda sent: sent.get("temperature", 1) != 1,
        _openai(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is "
            "supported.",
            "temperature",
            "unsupported_value",
        ),
    ),
    _row(
        "`temperature` at all",
        "LiteLLM",
        _has("temperature"),
        _openai(
            "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature'], for model=o3-mini. To "
            "drop these, set `litellm.drop_params=True` or for proxy:\n\n`litellm_settings:\n drop_params: true`\n. \n If "
            "you want to use these params dynamically send allowed_openai_params=['temperature'] in your request.",
            "None",
            "400",
            kind="None",
        ),
    ),
    _row(
        "`temperature` 0",
        "vLLM",
        lambda sent: sent.get("temperature") == 0,
        json_reply(
            {
                "detail": [
                    {
                        "type": "greater_than",
                        "loc": ["body", "temperature"],
                        "msg": "Input should be greater than 0",
                        "input": 0.0,
                        "ctx": {"gt": 0.0},
                    }
                ]
            },
            422,
        ),
    ),
    _row(
        "`max_tokens`",
        "OpenAI",
        _has("max_tokens"),
        _openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        ),
        settings={"MANIPLE_MODELS__BASIC__MAX_OUTPUT_TOKENS": "900"},
    ),
    _row(
        "`stream_options`",
        "Mistral",
        _has("stream_options"),
        json_reply(
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "stream_options"],
                            "msg": "Extra inputs are not permitted",
                            "input": {"include_usage": True},
                        }
                    ]
                },
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            },
            422,
        ),
    ),
    _row(
        "`response_format` with a schema",
        "DeepSeek",
        lambda sent: (sent.get("response_format") or {}).get("type") == "json_schema",
        _openai("This response_format type is unavailable now", None, "invalid_request_error"),
    ),
    _row(
        "any `response_format`",
        "gateways",
        _has("response_format"),
        _openai("Unrecognized request argument supplied: response_format"),
    ),
    _row(
        "a schema without `additionalProperties`",
        "OpenAI",
        lambda sent: (sent.get("response_format") or {}).get("type") == "json_schema",
        _openai(
            "Invalid schema for response_format 'Plan': In context=('properties', 'steps', 'items'), "
            "'additionalProperties' is required to be supplied and to be false.",
            "response_format",
        ),
    ),
    _row(
        "a schema keyword of tools",
        "Gemini",
        _schema_has("additionalProperties"),
        json_reply(
            [
                {
                    "error": {
                        "code": 400,
                        "message": 'Invalid JSON payload received. Unknown name "additionalProperties" at '
                        "'tools[0].function_declarations[0].parameters': Cannot find field.",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
            400,
        ),
    ),
    _row(
        "`tool_choice` that forces a tool",
        "DeepSeek",
        _forces_tool,
        _openai("Thinking mode does not support this tool_choice", None, "invalid_request_error"),
        also=[(_wants_schema, _openai("This response_format type is unavailable now"))],
    ),
    _row(
        "`tool_choice` while thinking",
        "Qwen",
        _forces_tool,
        _openai(
            "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or "
            "object in thinking mode",
            None,
            "invalid_parameter_error",
        ),
        also=[
            (
                _has("response_format"),
                _openai(
                    "<400> InternalError.Algo.InvalidParameter: Json mode response is not supported when "
                    "enable_thinking is true",
                    None,
                    "invalid_parameter_error",
                ),
            )
        ],
    ),
    _row(
        "calls without their `reasoning_content`",
        "DeepSeek",
        _lacks_reasoning,
        _openai(
            "The reasoning_content in the thinking mode must be passed back to the API.",
            None,
            "invalid_request_error",
        ),
        script={"coder": [_THINKING, _DONE]},
        outcome="the turn's thoughts are sent back; the run completes",
    ),
    _row(
        "calls without thoughts",
        "Kimi",
        _lacks_reasoning,
        _openai(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
        ),
        script={"coder": [_THINKING, _DONE]},
        outcome="the turn's thoughts are sent back; the run completes",
    ),
    _row(
        "tools without a parser",
        "vLLM",
        _has("tools"),
        _vllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        script=_TEXT_CALLS,
        outcome=_NO_TOOLS,
    ),
    _row(
        "tools",
        "Ollama",
        _has("tools"),
        _openai("registry.ollama.ai/library/gemma3:4b does not support tools", kind="api_error"),
        script=_TEXT_CALLS,
        outcome=_NO_TOOLS,
    ),
    _row(
        "tools, as 404",
        "OpenRouter",
        _has("tools"),
        json_reply(
            {
                "error": {
                    "message": "No endpoints found that support tool use. To learn more about provider routing, visit: "
                    "https://openrouter.ai/docs/provider-routing",
                    "code": 404,
                }
            },
            404,
        ),
        script=_TEXT_CALLS,
        outcome=_NO_TOOLS,
    ),
    _row(
        "tools without `--jinja`, as 500",
        "llama.cpp",
        _has("tools"),
        _llama_cpp("tools param requires --jinja flag"),
        script=_TEXT_CALLS,
        outcome=_NO_TOOLS,
    ),
    _row(
        "roles that do not alternate",
        "vLLM",
        _not_alternating,
        _vllm("Conversation roles must alternate user/assistant/user/assistant/..."),
    ),
    _row(
        "roles that do not alternate, with the template's trace",
        "LM Studio",
        _not_alternating,
        json_reply(
            {
                "error": 'Error rendering prompt with jinja template: "Conversation roles must alternate '
                "user/assistant/user/assistant/...\".\n\nThis is usually an issue with the model's prompt template."
            },
            400,
        ),
    ),
    _row(
        "system messages",
        "vLLM",
        lambda sent: _roles(sent)[0] == "system",
        _vllm("System role not supported"),
    ),
    _row(
        "pictures",
        "vLLM",
        _pictures,
        _vllm("At most 0 image(s) may be provided in one prompt."),
        question=_PICTURE,
        outcome="sent without them, and said; the run completes",
    ),
    _row(
        "pictures, as 500",
        "llama.cpp",
        _pictures,
        _llama_cpp(
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
        ),
        question=_PICTURE,
        outcome="sent without them, and said; the run completes",
    ),
    _row(
        "pictures, as an unknown variant",
        "DeepSeek",
        _pictures,
        _openai(
            "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected "
            "`text` at line 1 column 5321",
            None,
            "invalid_request_error",
        ),
        question=_PICTURE,
        outcome="sent without them, and said; the run completes",
    ),
    _row(
        "pictures, as 404",
        "OpenRouter",
        _pictures,
        json_reply({"error": {"message": "No endpoints found that support image input", "code": 404}}, 404),
        question=_PICTURE,
        outcome="sent without them, and said; the run completes",
    ),
    _row(
        "content that is a list",
        "gateways",
        lambda sent: any(isinstance(one.get("content"), list) for one in sent["messages"]),
        _openai("Invalid type for 'messages[1].content': expected a string, but got an array instead."),
        question=_PICTURE,
        outcome="sent without them, and said; the run completes",
    ),
    _row(
        "streams",
        "OpenAI",
        _has("stream"),
        _openai("Your organization must be verified to stream this model.", "stream", "unsupported_value"),
    ),
    _row(
        "calls without a text",
        "Qwen",
        _lacks_text,
        _openai(
            "<400> InternalError.Algo.InvalidParameter: The content field is a required field.",
            None,
            "invalid_parameter_error",
        ),
    ),
    # What ends by itself.
    _passes(
        "429 with `Retry-After`",
        "OpenAI",
        _openai(
            "Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000.",
            None,
            "rate_limit_exceeded",
            429,
            "tokens",
            **{"retry-after": "0"},
        ),
    ),
    _passes(
        "503 while it loads the model",
        "llama.cpp",
        json_reply(
            {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
            503,
            **{"retry-after": "0"},
        ),
    ),
    _passes(
        "an HTML page with 502",
        "gateways",
        json_reply(
            "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>"
            "\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>",
            502,
            **{"content-type": "text/html", "retry-after": "0"},
        ),
    ),
    # What nothing can be done about.
    _fails(
        "no money left",
        "DeepSeek",
        _openai("Insufficient Balance", None, "invalid_request_error", 402, "unknown_error"),
        "model_bad_request",
        "Insufficient Balance",
    ),
    _fails(
        "a wrong key",
        "OpenAI",
        _openai("Incorrect API key provided: sk-abc.", None, "invalid_api_key", 401),
        "model_auth",
        "401",
    ),
    _fails(
        "an unknown model",
        "Ollama",
        _openai('model "scripted" not found, try pulling it first', kind="api_error", status=404),
        "model_not_found",
        "try pulling it first",
    ),
    _fails(
        "a policy",
        "LiteLLM",
        _openai("The moon policy forbids this request.", None, "400"),
        "model_bad_request",
        "The moon policy forbids this request",
    ),
    _fails(
        "an error that is plain text",
        "gateways",
        json_reply("upstream says: quota of team blue is used up", 403, **{"content-type": "text/plain"}),
        "model_auth",
        "quota of team blue is used up",
    ),
)
