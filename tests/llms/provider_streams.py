# ruff: noqa: E501 - one event a line, as it is sent
"""What providers and local servers send as the stream of a chat completion, shortened, and what it means.

The shapes are those of recorded streams and of reports in public issue trackers, with texts of our own.
"""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
CALL = {"name": "search", "args": {"query": "tea"}}


@dataclass(frozen=True)
class ProviderStream:
    """The body of one response, and what the message must hold.

    `usage` are the tokens of input, output, and of the input from a cache. `error` is the code of a stream that
    ends in one, after `text`. `sdk` holds what the SDK's own stream with LangChain gives instead, by field.
    """

    body: str | bytes
    text: str = "Hi there"
    reasoning: str = ""
    calls: list[Json] = field(default_factory=list)
    usage: tuple[int, int, int] | None = None
    finish: str = "stop"
    model: str | None = "m"
    error: str | None = None
    sdk: Json = field(default_factory=dict)


def lines(*chunks: str, end: str = "\n\n", done: str = "data: [DONE]") -> str:
    """Return the body in which each chunk is one event."""
    return "".join(f"data: {chunk}{end}" for chunk in chunks) + (f"{done}{end}" if done else "")


STREAMS: dict[str, ProviderStream] = {
    "OpenAI": ProviderStream(
        lines(
            '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x1"}',
            '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x2"}',
            '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}],"usage":null}',
            '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}',
            '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}',
        ),
        usage=(9, 2, 4),
    ),
    "OpenAI, two tool calls": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"search","arguments":""}}],"refusal":null},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"query\\":"}}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \\"tea\\"}"}}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"search","arguments":""}}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\\"query\\": \\"tea\\"}"}}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
        ),
        text="",
        calls=[{**CALL, "id": "call_1"}, {**CALL, "id": "call_2"}],
        finish="tool_calls",
    ),
    "OpenAI, log probabilities": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":{"content":[],"refusal":null},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.1,"bytes":[72,105],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"logprobs":{"content":[{"token":" there","logprob":-0.2,"bytes":null,"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}',
        ),
    ),
    "OpenAI, two choices": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null},{"index":1,"delta":{"role":"assistant","content":"Bye"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null},{"index":1,"delta":{"content":" now"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"stop"}]}',
        ),
    ),
    "OpenAI, the old function call": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"function_call":{"arguments":"{}"}},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}',
        ),
        text="",
        calls=[{"name": "f", "args": {}, "id": None}],
        finish="function_call",
        sdk={"calls": []},
    ),
    "Azure": ProviderStream(
        lines(
            '{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}',
            '{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp"}',
            '{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":"Hi"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp"}',
            '{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":" there"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp"}',
            '{"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"stop","index":0,"logprobs":null}],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp"}',
            '{"choices":[],"created":1,"id":"c","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp","usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11}}',
        ),
        usage=(9, 2, 0),
    ),
    "Azure, asynchronous filter": ProviderStream(
        lines(
            '{"choices":[{"delta":{"role":"assistant","content":"Hi"},"finish_reason":null,"index":0}],"model":"m"}',
            '{"choices":[{"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":198},"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"finish_reason":null,"index":0}],"created":0,"id":"","model":"","object":""}',
            '{"choices":[{"delta":{"content":" there"},"finish_reason":null,"index":0}],"model":"m"}',
            '{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"model":"m"}',
            '{"choices":[{"content_filter_offsets":{"check_offset":506,"start_offset":44,"end_offset":571},"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"finish_reason":null,"index":0}],"created":0,"id":"","model":"","object":""}',
        ),
    ),
    "vLLM, usage in each chunk": ProviderStream(
        lines(
            '{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"usage":{"prompt_tokens":9,"total_tokens":9,"completion_tokens":0}}',
            '{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}}',
            '{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}',
            '{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}',
        ),
        usage=(9, 2, 0),
        sdk={"usage": (36, 5, 0)},
    ),
    "vLLM, reasoning and a tool call": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"reasoning":"I ","reasoning_content":"I "},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"reasoning":"search.","reasoning_content":"search."},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"search"}}]},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"query\\": "}}]},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"tea\\"}"}}]},"logprobs":null,"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}]}',
        ),
        text="",
        reasoning="I search.",
        calls=[{**CALL, "id": "chatcmpl-tool-1"}],
        finish="tool_calls",
    ),
    "SGLang, nulls everywhere": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"Hm","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":null,"content":"Hi","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":null,"content":" there","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":"stop","matched_stop":151645}],"usage":null}',
        ),
        reasoning="Hm",
    ),
    "Ollama": ProviderStream(
        lines(
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm"},"finish_reason":null}]}',
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}',
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"finish_reason":null}]}',
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}',
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        ),
        reasoning="Hm",
        usage=(9, 2, 0),
    ),
    "Ollama, <think> in the text": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"<think>"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"\\n"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hm."},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"</think>"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"\\n\\nHi"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"finish_reason":"stop"}]}',
        ),
        reasoning="Hm.",
    ),
    "llama.cpp": ProviderStream(
        lines(
            '{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"c","model":"m","system_fingerprint":"b1-a","object":"chat.completion.chunk"}',
            '{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1,"id":"c","model":"m","system_fingerprint":"b1-a","object":"chat.completion.chunk"}',
            '{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" there"}}],"created":1,"id":"c","model":"m","system_fingerprint":"b1-a","object":"chat.completion.chunk"}',
            '{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"c","model":"m","system_fingerprint":"b1-a","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11},"timings":{"prompt_n":9,"prompt_ms":246.1}}',
        ),
        usage=(9, 2, 0),
    ),
    "llama.cpp, an error": ProviderStream(
        lines(
            '{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":"Hi"}}],"model":"m"}',
            '{"error":{"code":500,"message":"Compute error.","type":"server_error"}}',
        ),
        text="Hi",
        error="model_overloaded",
    ),
    "LM Studio, an error": ProviderStream(
        lines(
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}]}',
            done="",
        )
        + 'event: error\ndata: {"error":{"message":"Model unloaded."},"message":"Model unloaded."}\n\n',
        text="Hi",
        error="model_overloaded",
    ),
    "DeepSeek": ProviderStream(
        ": keep-alive\n\n"
        + lines(
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"logprobs":null,"finish_reason":null}]}',
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"They"},"logprobs":null,"finish_reason":null}]}',
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"content":null,"reasoning_content":" greet."},"logprobs":null,"finish_reason":null}]}',
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"content":"Hi","reasoning_content":null},"logprobs":null,"finish_reason":null}]}',
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"content":" there","reasoning_content":null},"logprobs":null,"finish_reason":null}]}',
            '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3},"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}}',
        ),
        reasoning="They greet.",
        usage=(9, 5, 8),
    ),
    "Qwen on DashScope": ProviderStream(
        lines(
            '{"choices":[{"delta":{"content":null,"role":"assistant","reasoning_content":""},"index":0,"logprobs":null,"finish_reason":null}],"object":"chat.completion.chunk","usage":null,"created":1,"system_fingerprint":null,"model":"m","id":"c"}',
            '{"choices":[{"finish_reason":null,"logprobs":null,"delta":{"content":null,"reasoning_content":"Search."},"index":0}],"object":"chat.completion.chunk","usage":null,"created":1,"system_fingerprint":null,"model":"m","id":"c"}',
            '{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"search","arguments":""}}],"reasoning_content":null},"finish_reason":null,"index":0,"logprobs":null}],"object":"chat.completion.chunk","usage":null,"created":1,"model":"m","id":"c"}',
            '{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"","type":"function","function":{"arguments":"{\\"query\\":"}}],"reasoning_content":null},"finish_reason":null,"index":0,"logprobs":null}],"object":"chat.completion.chunk","usage":null,"created":1,"model":"m","id":"c"}',
            '{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"","type":"function","function":{"arguments":" \\"tea\\"}"}}],"reasoning_content":null},"finish_reason":null,"index":0,"logprobs":null}],"object":"chat.completion.chunk","usage":null,"created":1,"model":"m","id":"c"}',
            '{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"","type":"function","function":{"arguments":null}}],"reasoning_content":null},"finish_reason":"tool_calls","index":0,"logprobs":null}],"object":"chat.completion.chunk","usage":null,"created":1,"model":"m","id":"c"}',
            '{"choices":[],"object":"chat.completion.chunk","usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16},"created":1,"model":"m","id":"c"}',
        ),
        text="",
        reasoning="Search.",
        calls=[{**CALL, "id": "call_1"}],
        usage=(9, 7, 0),
        finish="tool_calls",
    ),
    "Mistral": ProviderStream(
        lines(
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"p":"abcdef"}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}',
        ),
        usage=(9, 2, 0),
    ),
    "Mistral, thinking as parts of the content": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"A greeting"}]}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":", so"}]}]},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}',
        ),
        reasoning="A greeting, so",
        sdk={"reasoning": ""},
    ),
    "Groq": ProviderStream(
        lines(
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"x_groq":{"id":"req_1"}}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}]}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}]}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"queue_time":0.1,"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}}',
            '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[],"usage":{"queue_time":0.1,"prompt_tokens":9,"completion_tokens":2,"total_tokens":11},"service_tier":"on_demand"}',
        ),
        usage=(9, 2, 0),
    ),
    "OpenRouter": ProviderStream(
        ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
        + lines(
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"He","reasoning_details":[{"type":"reasoning.text","text":"He","format":"unknown","index":0}]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":" greets.","reasoning_details":[{"type":"reasoning.text","text":" greets.","format":"unknown","index":0}]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi","reasoning":null,"reasoning_details":[]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop","native_finish_reason":"STOP","logprobs":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"native_finish_reason":null,"logprobs":null}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"cost":0.0001,"is_byok":false,"prompt_tokens_details":{"cached_tokens":0}}}',
        ),
        reasoning="He greets.",
        usage=(9, 5, 0),
    ),
    "OpenRouter, an error": ProviderStream(
        lines(
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}',
            '{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"error":{"code":429,"message":"Rate limited upstream","metadata":{"provider_name":"X"}},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}',
        ),
        text="Hi",
        error="model_rate_limited",
    ),
    "Together": ProviderStream(
        lines(
            '{"id":"o","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null,"seed":null,"delta":{"token_id":791,"role":"assistant","content":"Hi","tool_calls":null}}],"model":"m","usage":null}',
            '{"id":"o","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"text":" there","logprobs":null,"finish_reason":null,"seed":null,"delta":{"token_id":20023,"role":"assistant","content":" there","tool_calls":null}}],"model":"m","usage":null}',
            '{"id":"o","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","seed":18446744073709551616000,"delta":{"token_id":128009,"role":"assistant","content":"","tool_calls":null}}],"model":"m","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":0}}',
        ),
        usage=(9, 2, 0),
    ),
    "Fireworks": ProviderStream(
        lines(
            '{"id":"f","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}',
            '{"id":"f","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi there"},"finish_reason":null}],"usage":null}',
            '{"id":"f","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}',
            '{"id":"f","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"perf_metrics":{"tokens":2}}',
        ),
        usage=(9, 2, 0),
        finish="length",
    ),
    "xAI": ProviderStream(
        lines(
            '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Hm","role":"assistant"}}],"system_fingerprint":"fp"}',
            '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi","role":"assistant"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10},"system_fingerprint":"fp"}',
            '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" there"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11},"system_fingerprint":"fp"}',
            '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"system_fingerprint":"fp"}',
            '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"fp"}',
        ),
        reasoning="Hm",
        usage=(9, 2, 0),
        sdk={"usage": (27, 5, 0)},
    ),
    "Gemini's OpenAI endpoint": ProviderStream(
        lines(
            '{"choices":[{"delta":{"content":"Hi there","role":"assistant","extra_content":{"google":{"thought":false}}},"index":0}],"created":1,"id":"g","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11}}',
            '{"choices":[{"delta":{"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"Ej"}},"function":{"arguments":"{\\"query\\":","name":"search"},"id":"call_1","type":"function"}]},"index":0}],"created":1,"id":"g","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":6,"prompt_tokens":9,"total_tokens":15}}',
            '{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"\\"tea\\"}"},"type":"function"}]},"index":0}],"created":1,"id":"g","model":"m","object":"chat.completion.chunk"}',
            '{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\\"query\\":\\"tea\\"}","name":"search"},"id":"call_2","type":"function"}]},"index":0}],"created":1,"id":"g","model":"m","object":"chat.completion.chunk"}',
            '{"choices":[{"delta":{"role":"assistant"},"finish_reason":"stop","index":0}],"created":1,"id":"g","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":8,"prompt_tokens":9,"total_tokens":17}}',
        ),
        calls=[{**CALL, "id": "call_1"}, {**CALL, "id": "call_2"}],
        usage=(9, 8, 0),
        # Without a number each piece is a call of its own.
        sdk={
            "calls": [{"name": "search", "args": {}, "id": "call_1"}, {**CALL, "id": "call_2"}],
            "usage": (27, 16, 0),
        },
    ),
    "Moonshot": ProviderStream(
        lines(
            '{"id":"k","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"system_fingerprint":"fpv0"}',
            '{"id":"k","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"system_fingerprint":"fpv0"}',
            '{"id":"k","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}],"system_fingerprint":"fpv0"}',
            '{"id":"k","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":3}}],"system_fingerprint":"fpv0"}',
            '{"id":"k","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":3},"system_fingerprint":"fpv0"}',
        ),
        usage=(9, 2, 3),
    ),
    "Zhipu": ProviderStream(
        lines(
            '{"id":"z","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"\\n"}}]}',
            '{"id":"z","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Search."}}]}',
            '{"id":"z","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi there"}}]}',
            '{"id":"z","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"id":"call_-1","index":0,"type":"function","function":{"name":"search","arguments":"{\\"query\\":\\"tea\\"}"}}]}}]}',
            '{"id":"z","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":2}}}',
        ),
        reasoning="\nSearch.",
        calls=[{**CALL, "id": "call_-1"}],
        usage=(9, 7, 2),
        finish="tool_calls",
    ),
    "Perplexity": ProviderStream(
        lines(
            '{"id":"p","model":"m","created":1,"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10,"search_context_size":"low","cost":{"total_cost":0.005}},"citations":["https://a.example"],"object":"chat.completion.chunk","choices":[{"index":0,"finish_reason":null,"message":{"role":"assistant","content":"Hi"},"delta":{"role":"assistant","content":"Hi"}}]}',
            '{"id":"p","model":"m","created":1,"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"search_context_size":"low","cost":{"total_cost":0.006}},"citations":["https://a.example"],"object":"chat.completion.chunk","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi there"},"delta":{"role":"assistant","content":" there"}}]}',
            end="\r\n\r\n",
        ),
        usage=(9, 2, 0),
        sdk={"usage": (18, 3, 0)},
    ),
    "the id of a call in each piece": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"search","arguments":"{\\"query\\":"}}]}}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"arguments":"\\"tea\\"}"}}]}}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"search","arguments":"{\\"query\\":\\"tea\\"}"}}]},"finish_reason":"tool_calls"}]}',
        ),
        text="",
        calls=[{**CALL, "id": "a"}, {**CALL, "id": "b"}],
        finish="tool_calls",
    ),
    "one event in several lines": ProviderStream(
        'id: 7\nevent: message\nretry: 10\ndata: {"model":"m","choices":[{"index":0,\n'
        'data: "delta":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}]}\n\ndata:[DONE]\n\n'
    ),
    "lines that end with CR": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}',
            end="\r\r",
        )
    ),
    "a byte-order mark": ProviderStream(
        "\ufeff"
        + lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}',
        ),
        sdk={"text": " there"},  # the first event is lost
    ),
    "no [DONE]": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}]}',
            '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
            done="",
        ),
        usage=(9, 2, 0),
    ),
    "a JSON body": ProviderStream(
        '{"id":"j","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there","tool_calls":[{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\\"query\\":\\"tea\\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        calls=[{**CALL, "id": "call_1"}],
        usage=(9, 2, 0),
        finish="tool_calls",
        sdk={"error": "model_bad_response"},
    ),
    "an error as a JSON body": ProviderStream(
        '\ufeff\n{"error": {"code": 401, "message": "No key."}}',
        text="",
        error="model_auth",
        sdk={"error": "model_bad_response"},
    ),
    "lone surrogates": ProviderStream(
        lines(
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi \\ud83d\\ude00 \\ud83d"}}]}',
            '{"model":"m","choices":[{"index":0,"delta":{"content":"!","reasoning_content":"\\ude00"},"finish_reason":"stop"}]}',
        ),
        text="Hi 😀 �!",
        reasoning="�",
        sdk={"reasoning": "\ude00"},
    ),
    "huge integers": ProviderStream(
        lines(
            '{"model":"m","created":99999999999999999999999999,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":36893488147419103232,"completion_tokens":2,"total_tokens":36893488147419103234}}'
        ),
        usage=(36893488147419103232, 2, 0),
    ),
    "no JSON": ProviderStream(
        lines('{"model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}', "{not json"),
        text="Hi",
        error="model_bad_response",
    ),
    "no JSON object": ProviderStream(lines("[1]"), text="", error="model_bad_response"),
    "frames that are no part of the answer": ProviderStream(
        lines(
            ": keepalive",
            "",
            "null",
            '{"type":"ping"}',
            '{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}',
            '[{"queue":1}]',
            "keep-alive",
            '{"choices":null}',
            end="\n\n: a comment\n\nevent: ping\ndata: {}\n\nevent: unknown\n\n",
            done="",
        )
        + lines('{"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}'),
        sdk={"error": "model_bad_response"},
    ),
    "a frame in the event of a chunk": ProviderStream(
        'data: : keepalive\ndata: {"model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n'
        'data: {"model":"m","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}\n\n',
        sdk={"error": "model_bad_response"},
    ),
    "an error without its envelope": ProviderStream(
        lines('{"object":"error","message":"No key.","type":"AuthenticationError","code":401}'),
        text="",
        error="model_auth",
        sdk={"error": "model_stream_cut"},
    ),
    "an event of the name error": ProviderStream(
        "event: error\n" + lines('{"message":"No key.","code":401}'),
        text="",
        error="model_auth",
        sdk={"error": "model_stream_cut"},
    ),
    "no UTF-8": ProviderStream(
        b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n',
        text="",
        error="model_bad_response",
    ),
    "an empty body": ProviderStream("", text="", error="model_bad_response"),
    "a stream that is cut": ProviderStream(
        lines('{"model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}', done="")
        + 'data: {"model":"m","choices":[{"index":0,"delta":{"conte',
        text="Hi",
        error="model_stream_cut",
    ),
}
