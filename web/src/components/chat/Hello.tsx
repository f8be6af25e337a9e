import { useEffect, useState } from "preact/hooks";
import { apiKey } from "../../api";
import { beginDraft } from "../../drafts";
import { members } from "../../members";
import { type Absence, absences } from "../../readiness";
import { texts } from "../../texts";
import { ModelNote } from "../models/ModelNote";

/** The start page of a new conversation: what the team is for, who is on it, and what is unavailable. */
export function Hello() {
  const [absent, setAbsent] = useState<Absence[]>([]);
  useEffect(() => {
    void absences().then(setAbsent, () => undefined);
  }, [apiKey.value]);
  const model = absent.find((one) => one.part === "model");
  const others = absent.filter((one) => one !== model);
  return (
    <section class="hello">
      <img class="logo" src="./icon.svg" alt="" width="48" height="48" />
      <h1>{texts.hello}</h1>
      <p>{texts.hint}</p>
      <Team />
      {!model && <ModelNote />}
      {model && (
        <p class="notice bad" role="alert">
          {texts.noModel} {model.why}
        </p>
      )}
      {!model && <Examples absent={new Set(others.map(({ part }) => part))} />}
      <p>
        <a class="watch" href="./sample#event=1" target="_blank" rel="noopener">{texts.watchSample}</a>
      </p>
      {others.length > 0 && (
        <details class="absent">
          <summary>{texts.absent}</summary>
          <ul>
            {others.map((one) => (
              <Lack key={one.part} absence={one} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** A part that is missing: what it means for a question, and for the operator why, in the service's own words. */
function Lack({ absence: { part, isTools, why } }: { absence: Absence }) {
  const { name, text } = isTools ? { name: texts.lacksTools.name(part), text: texts.lacksTools.text } : (texts.lacks[part] ?? { name: part, text: "" });
  return (
    <li>
      <b>{name}</b> {text}
      <details>
        <summary>{texts.lacksWhy}</summary>
        <p lang="en">{why}</p>
      </details>
    </li>
  );
}

/** Who leads the team; its members come from the service. */
const LEADERS = ["coordinator", "planner", "supervisor"];

/** Who is on the team, and what each is for. Roles of the settings are explained by their descriptions when pointed at. */
function Team() {
  if (members.value.length === 0) return null;
  return (
    <ul class="crew" aria-label={texts.team}>
      {LEADERS.map((name) => (
        <li key={name}>
          <b>{name}</b> {texts.duties[name]}
        </li>
      ))}
      {members.value.map(({ name, desc }) => (
        <li key={name} title={desc}>
          <b>{name}</b> {texts.duties[name] ?? ""}
        </li>
      ))}
    </ul>
  );
}

/** Questions that show what the team is for, without those whose part of the service is unavailable. They go into the field, and are not sent. */
function Examples({ absent }: { absent: ReadonlySet<string> }) {
  return (
    <ul class="examples" aria-label={texts.examples}>
      {Object.entries(texts.exampleQuestions)
        .filter(([part]) => !absent.has(part))
        .map(([, { name, text }]) => (
          <li key={name}>
            <button onClick={() => beginDraft(null, text)}>
              <b>{name}</b> <span>{text}</span>
            </button>
          </li>
        ))}
    </ul>
  );
}
