"""What the LangManus web client can follow, written down from `docs/wire.md`, "Order"."""

from collections.abc import Iterable, Mapping
from typing import Any

Frame = tuple[str, Mapping[str, Any]]


class Client:
    """Reads a stream as the old client does, and complains where that one breaks."""

    def __init__(self) -> None:
        self.agent: str | None = None
        self.pair_open = False
        self.pairs_of_agent = 0
        self.tools: dict[str, str] = {}
        self.workflow: str | None = None
        self.ended: list[str] = []
        self.status: str | None = None
        self.agents: list[str] = []

    def read(self, frames: Iterable[Frame]) -> "Client":
        for name, data in frames:
            assert not self.ended or self.ended[-1] != "final_session_state", f"{name} after the last event"
            if read := getattr(self, f"on_{name}", None):  # it passes over the others
                read(data)
        assert self.ended[-1:] == ["final_session_state"]
        assert self.agent is None
        assert self.status is not None
        return self

    def on_start_of_workflow(self, data: Mapping[str, Any]) -> None:
        assert self.workflow is None
        assert self.agent is None
        assert data["input"]
        self.workflow = data["workflow_id"]

    def on_start_of_agent(self, data: Mapping[str, Any]) -> None:
        assert self.agent is None, f"{data['agent_name']} starts inside {self.agent}"
        if data["agent_name"] != "coordinator":
            assert self.workflow is not None
        assert data["agent_name"] != "supervisor"
        self.agent, self.pairs_of_agent = data["agent_id"], 0
        self.agents.append(data["agent_name"])

    def on_end_of_agent(self, data: Mapping[str, Any]) -> None:
        assert self.agent == data["agent_id"]
        assert not self.pair_open
        assert self.pairs_of_agent > 0
        assert not self.tools, "a tool's view would wait for ever"
        self.agent = None

    def on_start_of_llm(self, data: Mapping[str, Any]) -> None:
        assert self.agent is not None
        assert not self.pair_open
        self.pair_open = True
        self.pairs_of_agent += 1

    def on_end_of_llm(self, data: Mapping[str, Any]) -> None:
        assert self.pair_open
        self.pair_open = False

    def on_message(self, data: Mapping[str, Any]) -> None:
        assert self.pair_open
        assert data["message_id"]
        assert len(data["delta"]) == 1
        if self.agents[-1] == "coordinator":
            assert data["delta"]["content"]

    def on_tool_call(self, data: Mapping[str, Any]) -> None:
        assert self.agent is not None
        assert self.pairs_of_agent > 0
        assert not self.pair_open
        assert isinstance(data["tool_input"], dict)
        self.tools[data["tool_call_id"]] = data["tool_name"]

    def on_tool_output(self, data: Mapping[str, Any]) -> None:
        assert self.tools[data["tool_call_id"]] == data["tool_name"], "output of a call that is not under way"
        assert not self.pair_open

    def on_tool_call_result(self, data: Mapping[str, Any]) -> None:
        assert self.tools.pop(data["tool_call_id"]) == data["tool_name"]
        assert isinstance(data["tool_result"], str)

    def on_browser_step(self, data: Mapping[str, Any]) -> None:
        assert data["tool_call_id"] in self.tools, "a step of a call that is not under way"
        assert not self.pair_open

    def on_interrupt(self, data: Mapping[str, Any]) -> None:
        assert self.agent is None

    def on_error(self, data: Mapping[str, Any]) -> None:
        assert self.agent is None
        assert data["message"]

    def on_run_status(self, data: Mapping[str, Any]) -> None:
        assert self.status is None
        self.status = data["status"]

    def on_end_of_workflow(self, data: Mapping[str, Any]) -> None:
        assert self.workflow == data["workflow_id"]
        assert self.status is not None
        assert self.agent is None
        self.ended.append("end_of_workflow")

    def on_final_session_state(self, data: Mapping[str, Any]) -> None:
        if self.workflow is not None:
            assert self.ended == ["end_of_workflow"], "the client's history would be erased"
        self.ended.append("final_session_state")
