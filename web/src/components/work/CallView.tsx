import { useState } from "preact/hooks";
import type { BrowserStep } from "../../events";
import type { Call } from "../../run";
import { words } from "../../words";

/** As much of a result as is shown at once, in characters. */
const SHOWN = 20_000;
const SHOWN_OBSERVATION = 1_000;
const CODE: Record<string, string> = { python_repl_tool: "code", bash_tool: "cmd" };

interface Link {
  title: string;
  url: string;
}

/** One tool call: its name and what it is about; arguments and result when it is opened. */
export function CallView({ call }: { call: Call; result: string | null; output: string; steps: BrowserStep[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="call" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span class="sign" aria-hidden="true">{call.result === null ? "●" : "✓"}</span>
        <code>{call.tool}</code> <span class="about">{about(call.input)}</span>
        {call.result === null && <span class="unseen">, {words.working}</span>}
      </summary>
      {isOpen && (
        <>
          <Given call={call} />
          {call.steps.length > 0 && <Steps steps={call.steps} />}
          {call.result === null && call.output && <Block name={words.output} text={call.output} />}
          {call.result !== null && <Result call={call} result={call.result} />}
        </>
      )}
    </details>
  );
}

function Steps({ steps }: { steps: BrowserStep[] }) {
  return (
    <ol class="steps-done" aria-label={words.browser}>
      {steps.map(({ number, state, thought, action, observation, seconds }) => (
        <li key={number}>
          <p>
            {action && <code>{`${action.name} ${JSON.stringify(action.parameters)}`}</code>}{" "}
            <span class="who">{seconds > 0 ? `${seconds.toFixed(1)} s` : (words.status[state] ?? state)}</span>
          </p>
          {thought && <p class="thought">{thought}</p>}
          {observation && <p class="who">{observation.slice(0, SHOWN_OBSERVATION)}</p>}
        </li>
      ))}
    </ol>
  );
}

function about(input: Record<string, unknown>): string {
  const first = Object.values(input).find((value) => typeof value === "string") ?? "";
  return String(first).slice(0, 200);
}

function Given({ call }: { call: Call }) {
  const field = CODE[call.tool];
  const code = field ? call.input[field] : undefined;
  return <Block name={words.argumentsOf} text={typeof code === "string" ? code : JSON.stringify(call.input, null, 2)} />;
}

function Result({ call, result }: { call: Call; result: string }) {
  const links = call.tool === "tavily_search" ? linksOf(result) : [];
  if (links.length === 0) return <Block name={words.result} text={result} />;
  return (
    <ul class="links">
      {links.map((link) => (
        <li key={link.url}>
          <a href={link.url} target="_blank" rel="noopener noreferrer">
            {link.title || link.url}
          </a>{" "}
          <span class="who">{new URL(link.url).hostname}</span>
        </li>
      ))}
    </ul>
  );
}

/** The web addresses that a search found; none when its result is something else, such as an error. */
export function linksOf(result: string): Link[] {
  try {
    const found: unknown = JSON.parse(result);
    return Array.isArray(found) ? found.filter(isLink) : [];
  } catch {
    return [];
  }
}

function isLink(one: unknown): one is Link {
  const url = (one as Partial<Link> | null)?.url;
  return typeof url === "string" && /^https?:\/\//i.test(url) && URL.canParse(url);
}

function Block({ name, text }: { name: string; text: string }) {
  return (
    <>
      <p class="label">{name}</p>
      <pre tabIndex={0} aria-label={name}>
        {text.slice(0, SHOWN)}
        {text.length > SHOWN && "…"}
      </pre>
    </>
  );
}
