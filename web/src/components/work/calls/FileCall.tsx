import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { LineDiff } from "../LineDiff";
import { Text } from "../Text";
import { Answer } from "./Answer";

const LANGUAGES = new Map(Object.entries({
  py: "python", js: "javascript", ts: "typescript", json: "json", sh: "bash", html: "xml", xml: "xml", css: "css", yaml: "yaml", yml: "yaml", sql: "sql",
}));

/** A call that wrote, changed, read or searched files. */
export function FileCall({ call }: { call: Call }) {
  const text = (name: string) => (typeof call.input[name] === "string" ? (call.input[name] as string) : "");
  const path = text("path");
  const language = LANGUAGES.get(path.slice(path.lastIndexOf(".") + 1)) ?? "";
  const [gone, come] = [text("old_str"), text("content") || text("file_text") || text("new_str")];
  const rest = Object.entries(call.input).filter(([name, value]) => !SHOWN.has(name) && value !== "" && value !== null);
  return (
    <>
      <p>
        <code>{path || "."}</code>{" "}
        <span class="who">{rest.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ").slice(0, 500)}</span>
      </p>
      {gone ? <LineDiff old={gone} now={come} language={language} /> : come && <Text name={texts.written} text={come} language={language} />}
      <Answer call={call} />
    </>
  );
}

const SHOWN = new Set(["path", "content", "file_text", "old_str", "new_str"]);
