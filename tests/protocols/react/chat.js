// A chat of `useStream`: the page of a front-end developer, with its thread in the address, so that a reload goes on.
// With `history` in the address it is that of the first generation, which reads all states, as agent-chat-ui does.
import { createElement as element, useState } from "react";
import { createRoot } from "react-dom/client";
import { useStream } from "@langchain/react";
import { useStream as useStreamWithHistory } from "@langchain/langgraph-sdk/react";

const address = new URL(location.href);
const options = Object.fromEntries([...address.searchParams].filter(([name]) => name.startsWith("set_")));
const context = Object.fromEntries(Object.entries(options).map(([name, value]) => [name.slice(4), JSON.parse(value)]));

const connection = {
  apiUrl: address.searchParams.get("api"),
  assistantId: "maniple",
  threadId: address.searchParams.get("thread"),
  onThreadId: remember,
};

function remember(threadId) {
  address.searchParams.set("thread", threadId);
  history.replaceState(null, "", address);
}

function Chat() {
  const [text, setText] = useState("");
  const stream = useStream(connection);
  const { messages, values, interrupt, isLoading, isThreadLoading, error } = stream;
  const button = (name, act, disabled = false) => element("button", { onClick: () => void act(), disabled }, name);
  const send = () => stream.submit({ messages: [{ type: "human", content: text }] }, { config: { configurable: context } });
  const asked = interrupt?.value;
  return element(
    "main",
    { "data-state": isThreadLoading ? "opening" : isLoading ? "working" : asked ? "waiting" : "idle" },
    element("ol", null, messages.map((one) => element("li", { key: one.id, "data-type": one.getType() }, one.text))),
    element("ul", null, values.plan?.steps.map((one) => element("li", { key: one.step_id, "data-status": one.status }, one.title))),
    asked && element("pre", null, JSON.stringify(asked)),
    error ? element("p", { role: "alert" }, String(error)) : null,
    element("input", { value: text, onChange: (event) => setText(event.target.value) }),
    button("Send", send, isThreadLoading),
    button("Answer", () => stream.respond(text), !asked),
    button("Approve", () => stream.respond({ decisions: [{ type: "approve" }] }), !asked),
    button("Edit", () => stream.respond({ decisions: [{ type: "edit", edited_action: { name: "bash_tool", args: { cmd: text } } }] }), !asked),
    button("Stop", () => stream.stop(), !isLoading),
  );
}

function ChatWithHistory() {
  const [text, setText] = useState("");
  const [threadId, setThreadId] = useState(connection.threadId);
  const onThreadId = (id) => (remember(id), setThreadId(id));
  const stream = useStreamWithHistory({ ...connection, threadId, onThreadId, fetchStateHistory: true });
  const { messages, interrupt, isLoading, isThreadLoading, error } = stream;
  const newest = (type) => stream.getMessagesMetadata(messages.findLast((one) => one.type === type) ?? {});
  const before = (type) => newest(type)?.firstSeenState?.parent_checkpoint;
  const human = [{ type: "human", content: text }];
  const options = { streamMode: ["values"], streamSubgraphs: true, streamResumable: true };
  const button = (name, act, disabled = false) => element("button", { onClick: () => void act(), disabled }, name);
  const older = () => stream.setBranch(newest("human").branchOptions[0]);
  return element(
    "main",
    { "data-state": isThreadLoading ? "opening" : isLoading ? "working" : interrupt ? "waiting" : "idle" },
    element("ol", null, messages.map((one) => element("li", { key: one.id }, one.content))),
    interrupt && element("pre", null, JSON.stringify(interrupt.value ?? interrupt)),
    error ? element("p", { role: "alert" }, String(error)) : null,
    element("input", { value: text, onChange: (event) => setText(event.target.value) }),
    button("Send", () => stream.submit({ messages: human }, options)),
    button("Edit", () => stream.submit({ messages: human }, { ...options, checkpoint: before("human") })),
    button("Refresh", () => stream.submit(undefined, { ...options, checkpoint: before("ai") })),
    button("Approve", () => stream.submit({}, { command: { resume: { decisions: [{ type: "approve" }] } } })),
    button("Resolve", () => stream.submit({}, { command: { goto: "__end__" } })),
    button("Older", older, !newest("human")?.branchOptions),
  );
}

const page = address.searchParams.has("history") ? ChatWithHistory : Chat;
createRoot(document.getElementById("root")).render(element(page));
