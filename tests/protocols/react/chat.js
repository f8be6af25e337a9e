// A chat of `useStream`: the page of a front-end developer, with its thread in the address, so that a reload goes on.
import { createElement as element, useState } from "react";
import { createRoot } from "react-dom/client";
import { useStream } from "@langchain/react";

const address = new URL(location.href);
const options = Object.fromEntries([...address.searchParams].filter(([name]) => name.startsWith("set_")));
const context = Object.fromEntries(Object.entries(options).map(([name, value]) => [name.slice(4), JSON.parse(value)]));

function remember(threadId) {
  address.searchParams.set("thread", threadId);
  history.replaceState(null, "", address);
}

function Chat() {
  const [text, setText] = useState("");
  const stream = useStream({
    apiUrl: address.searchParams.get("api"),
    assistantId: "maniple",
    threadId: address.searchParams.get("thread"),
    onThreadId: remember,
  });
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

createRoot(document.getElementById("root")).render(element(Chat));
