# ruff: noqa: E501 (outputs of models are shown as they are)
"""What models write when their endpoint does not parse their calls: one call of `bash_tool` each."""

CALLED = '{"cmd": "ls"}'
NAMED = '{"name": "bash_tool", "arguments": {"cmd": "ls"}}'
ENVELOPES = {
    "Hermes and Qwen": f"<tool_call>\n{NAMED}\n</tool_call>",
    "without a closing mark": f"<tool_call>\n{NAMED}",
    "in one line": f"<tool_call>{NAMED}</tool_call>",
    "arguments that are text": '<tool_call>{"name": "bash_tool", "arguments": "{\\"cmd\\": \\"ls\\"}"}</tool_call>',
    "arguments encoded twice": '<tool_call>{"name": "bash_tool", "arguments": '
    '"\\"{\\\\\\"cmd\\\\\\": \\\\\\"ls\\\\\\"}\\""}</tool_call>',
    "without the last brace": '<tool_call>\n{"name": "bash_tool", "arguments": {"cmd": "ls"}\n</tool_call>',
    "in Python's literals": "<tool_call>{'name': 'bash_tool', 'arguments': {'cmd': 'ls'}}</tool_call>",
    "parameters": '<tool_call>{"name": "bash_tool", "parameters": {"cmd": "ls"}}</tool_call>',
    "a fence in tags": f"<tool_call>\n```json\n{NAMED}\n```\n</tool_call>",
    "a call in Python in tags": "<tool_call>bash_tool(cmd='ls')</tool_call>",
    "a name before JSON in tags": f"<tool_call>bash_tool\n{CALLED}</tool_call>",
    "Nemotron": f"<TOOLCALL>[{NAMED}]</TOOLCALL>",
    "function calls": f"<function_calls>[{NAMED}]</function_calls>",
    "Qwen3-Coder": "<tool_call>\n<function=bash_tool>\n<parameter=cmd>\nls\n</parameter>\n</function>\n</tool_call>",
    "Qwen3-Coder without the outer tag": "<function=bash_tool><parameter=cmd>ls</parameter></function>",
    "Qwen3-Coder without closing tags": "<function=bash_tool>\n<parameter=cmd>\nls\n</function>",
    "Llama 3.1 custom": f"<function=bash_tool>{CALLED}</function>",
    "Anthropic": '<function_calls>\n<invoke name="bash_tool">\n<parameter name="cmd">ls</parameter>\n</invoke>\n'
    "</function_calls>",
    "Anthropic without envelope": "<invoke name='bash_tool'><parameter name='cmd'>ls</parameter></invoke>",
    "with a namespace": '<x:function_calls><x:invoke name="bash_tool"><x:parameter name="cmd">ls</x:parameter>'
    "</x:invoke></x:function_calls>",
    "MiniMax": '<minimax:tool_call>\n<invoke name="bash_tool">\n<parameter name="cmd">ls</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "DeepSeek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash_tool">\n<｜DSML｜parameter name="cmd" '
    'string="true">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "to=": f"to=functions.bash_tool json{CALLED}",
    "to= with marks": f"assistant to=functions.bash_tool<|channel|>commentary<|constrain|>json<|message|>{CALLED}",
    "harmony": f"<|channel|>commentary to=functions.bash_tool <|constrain|>json<|message|>{CALLED}<|call|>",
    "harmony with a role": f"<|start|>assistant<|channel|>commentary to=functions.bash_tool json<|message|>{CALLED}"
    "<|call|>",
    "harmony without marks": f"assistantcommentary to=functions.bash_tool json{CALLED}",
    "Gemma 4": '<|tool_call>call:bash_tool{cmd:<|"|>ls<|"|>}<tool_call|>',
    "Gemma 4 without an end": '<|tool_call>call:bash_tool{cmd:<|"|>ls<|"|>}',
    "Mistral's list": f"[TOOL_CALLS][{NAMED}]",
    "Mistral's list after a space": f"[TOOL_CALLS] [{NAMED}]",
    "Mistral's name": f"[TOOL_CALLS]bash_tool{CALLED}",
    "Mistral's arguments": f"[TOOL_CALLS]bash_tool[ARGS]{CALLED}",
    "Mistral's id": f"[TOOL_CALLS]bash_tool[CALL_ID]a1B2c3D4e[ARGS]{CALLED}",
    "Llama 3": '<|python_tag|>{"type": "function", "name": "bash_tool", "parameters": {"cmd": "ls"}}<|eom_id|>',
    "Llama 3 in Python": "<|python_tag|>bash_tool.call(cmd='ls')",
    "LFM2": "<|tool_call_start|>[bash_tool(cmd='ls')]<|tool_call_end|>",
    "DeepSeek 3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash_tool\n```json\n"
    f"{CALLED}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "DeepSeek 3.1": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash_tool<｜tool▁sep｜>{CALLED}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash_tool:0<|tool_call_argument_begin|>"
    f"{CALLED}<|tool_call_end|><|tool_calls_section_end|>",
    "GLM": "<tool_call>bash_tool\n<arg_key>cmd</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "GLM in one line": "<tool_call>bash_tool<arg_key>cmd</arg_key><arg_value>ls</arg_value></tool_call>",
    "Granite": f"<|tool_call|>[{NAMED}]",
    "Phi": f"<|tool_call|>[{NAMED}]<|/tool_call|>",
    "Command R7B": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "bash_tool", "parameters": {"cmd": "ls"}}]'
    "<|END_ACTION|>",
    "ReAct": f"Action: bash_tool\nAction Input: {CALLED}",
    "ReAct in bold": f"**Action:** bash_tool\n**Action Input:** {CALLED}",
    "ReAct in Python": 'Action: bash_tool(cmd="ls")',
    "ReAct with JSON": 'Action:\n```json\n{"action": "bash_tool", "action_input": {"cmd": "ls"}}\n```',
    "Command R": 'Action: ```json\n[{"tool_name": "bash_tool", "parameters": {"cmd": "ls"}}]\n```',
    "Qwen-Agent": f"✿FUNCTION✿: bash_tool\n✿ARGS✿: {CALLED}",
    "LM Studio": f"[TOOL_REQUEST]{NAMED}[END_TOOL_REQUEST]",
    "FunctionGemma": "<start_function_call>call:bash_tool{cmd:<escape>ls<escape>}<end_function_call>",
    "Phi-4-mini": f"functools[{NAMED}]",
    "Apertus": f'<|tools_prefix|>[{{"bash_tool": {CALLED}}}]<|tools_suffix|>',
    "Hunyuan": "<tool_calls><tool_call>bash_tool<tool_sep><arg_key>cmd</arg_key><arg_value>ls</arg_value></tool_call>"
    "</tool_calls>",
    "LongCat": "<longcat_tool_call>bash_tool\n<longcat_arg_key>cmd</longcat_arg_key>\n"
    "<longcat_arg_value>ls</longcat_arg_value>\n</longcat_tool_call>",
    "Solar": f"<|tool_calls|><|tool_call:begin|>7<|tool_call:name|>bash_tool<|tool_call:args|>{CALLED}"
    "<|tool_call:end|>",
    "Step": '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="bash_tool">'
    '<steptml:parameter name="cmd">ls</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
    "MiniCPM": '<function name="bash_tool"><param name="cmd">ls</param></function>',
    "a name as attribute": f'<tool_call name="bash_tool">{CALLED}</tool_call>',
    "a call in a call": f'<tool_call>{{"tool_call": {NAMED}}}</tool_call>',
    "debris in the name": '<tool_call>{"name": "functions.bash_tool<|channel|>commentary", "arguments": '
    '{"cmd": "ls"}}</tool_call>',
}
"""A call of `bash_tool` with `cmd` `ls`, wherever it stands in a text."""
UNMARKED = {
    "JSON": NAMED,
    "JSON of several lines": '{\n  "name": "bash_tool",\n  "arguments": {\n    "cmd": "ls"\n  }\n}',
    "a fence": f"```json\n{NAMED}\n```",
    "a fence in one line": f"```json {NAMED} ```",
    "a fence without an end": f"```json\n{NAMED}",
    "a fence in tildes": f"~~~\n{NAMED}\n~~~",
    "Llama 3.1": '{"type": "function", "name": "bash_tool", "parameters": {"cmd": "ls"}}',
    "an endpoint's form": '{"tool_calls": [{"function": {"name": "bash_tool", "arguments": "{\\"cmd\\": \\"ls\\"}"}}]}',
    "parallel use": '{"tool_uses": [{"recipient_name": "functions.bash_tool", "parameters": {"cmd": "ls"}}]}',
    "Command R": '```json\n[{"tool_name": "bash_tool", "parameters": {"cmd": "ls"}}]\n```',
    "trailing commas and a comment": '{"name": "bash_tool", // list\n "arguments": {"cmd": "ls",},}',
    "a brace too many": NAMED + "}",
    "an object in `function_call`": '{"function_call": {"name": "bash_tool", "arguments": "{\\"cmd\\": \\"ls\\"}"}}',
    "the name as key": f'{{"bash_tool": {CALLED}}}',
    "other keys": '{"function_name": "bash_tool", "kwargs": {"cmd": "ls"}}',
    "a name before JSON": f"bash_tool\n{CALLED}",
    "a name before a fence": f"bash_tool\n```json\n{CALLED}\n```",
    "Mistral's arguments without a mark": f"bash_tool[ARGS]{CALLED}",
    "Functionary": f">>>bash_tool\n{CALLED}",
    "Python": "bash_tool(cmd='ls')",
    "Python in a fence": "```python\nbash_tool(cmd='ls')\n```",
    "Gemma": "```tool_code\nprint(default_api.bash_tool(cmd='ls'))\n```",
    "Llama 4": "[bash_tool(cmd='ls')]",
    "marks in a fence": f"```xml\n<tool_call>{NAMED}</tool_call>\n```",
}
"""The same call in forms that other texts have, too: it is one where the text ends with it."""
