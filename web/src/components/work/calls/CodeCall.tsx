import { useEffect, useRef } from "preact/hooks";
import { FAILURE, ranOf } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Coloured, Text } from "../Text";
import { CallFiles } from "./CallFiles";

/** A command or Python code, its live output and its figures. */
export function CodeCall({ call }: { call: Call }) {
  const isBash = call.tool === "bash_tool";
  const code = call.input[isBash ? "cmd" : "code"];
  const given = typeof code === "string" ? code : JSON.stringify(call.input, null, 2);
  return (
    <>
      {isBash ? (
        <Text name={texts.argumentsOf} text={given} kind="terminal prompt" />
      ) : (
        <Text name={texts.argumentsOf} text={given} language="python" />
      )}
      {call.result === null ? <Printing call={call} /> : <Ended call={call} result={call.result} />}
      <CallFiles files={call.files} />
    </>
  );
}

/** The newest output stays in view, unless the user scrolled back. */
function Printing({ call }: { call: Call }) {
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [call.version]);
  if (call.printed.length === 0) return null;
  const note = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: { currentTarget: HTMLPreElement }) =>
    void (follows.current = scrollHeight - scrollTop - clientHeight < 20);
  return (
    <div class="text terminal">
      <pre ref={place} tabIndex={0} role="group" aria-label={texts.output} onScroll={note}>
        {call.printed.map(({ stream, text }, index) => (
          <span key={index} class={stream}><Coloured text={text} /></span>
        ))}
      </pre>
    </div>
  );
}

function Ended({ call, result }: { call: Call; result: string }) {
  const { out, err, notes: all } = ranOf(result);
  // The files are listed below.
  const notes = all.filter((one) => call.files.length === 0 || !/^(?:figures drawn|files written):/.test(one));
  return (
    <>
      {out && <Text name={texts.result} text={out} kind="terminal" />}
      {err && <Text name={texts.errors} text={err} kind="terminal stderr" />}
      {notes.length > 0 && (
        <ul class="notes">
          {notes.map((one) => (
            <li key={one} class={FAILURE.test(one) ? "bad" : ""}>{noteText(one)}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The notes of the sandbox that are put in the language of the page, with the value in each. */
const NOTES: readonly [RegExp, (value: string) => string][] = [
  [/^took ([\d.]+) s$/, (value) => texts.codeNotes.took(value)],
  [/^exit code (.+)$/, (value) => texts.codeNotes.exit(value)],
  [/^timeout: stopped after (\d+) seconds/, (value) => texts.codeNotes.timeout(value)],
];

function noteText(note: string): string {
  for (const [form, say] of NOTES) {
    const found = form.exec(note);
    if (found) return say(found[1]!);
  }
  return note;
}
