import { parsed } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Text } from "../Text";
import { Answer } from "./Answer";

const MAX_ROWS = 20;
const MAX_VALUE_LENGTH = 300;

/** Any other tool: its arguments and its result, formatted if it is JSON. */
export function PlainCall({ call }: { call: Call }) {
  const given = Object.entries(call.input);
  const isSmall = given.length <= MAX_ROWS && given.every(([, value]) => !isDeep(value) && String(value).length <= MAX_VALUE_LENGTH);
  return (
    <>
      {given.length > 0 && (isSmall ? <Arguments given={given} /> : <Text name={texts.argumentsOf} text={pretty(call.input)} language="json" />)}
      <Result call={call} />
    </>
  );
}

function Arguments({ given }: { given: [string, unknown][] }) {
  return (
    <table class="arguments" aria-label={texts.argumentsOf}>
      <tbody>
        {given.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{typeof value === "string" ? value : JSON.stringify(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Result({ call }: { call: Call }) {
  const result = call.result ?? "";
  const value = /^\s*[[{]/.test(result) ? parsed(result) : undefined;
  if (value === undefined) return <Answer call={call} />;
  // The result of the browser's call is text in a JSON object.
  const said = (value as { result_content?: unknown }).result_content;
  if (typeof said === "string") return <Text name={texts.result} text={said} />;
  return <Text name={texts.result} text={pretty(value)} language="json" />;
}

function isDeep(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
