import { useEffect, useState } from "preact/hooks";
import { apiKey } from "../../api";
import { type Absence, absences, answeringModel } from "../../readiness";
import { texts } from "../../texts";

/** The start page of a new conversation, with the unavailable parts of the service. */
export function Hello() {
  const [absent, setAbsent] = useState<Absence[]>([]);
  const [name, setName] = useState("");
  useEffect(() => {
    void absences().then(setAbsent, () => undefined);
    void answeringModel().then(setName, () => undefined);
  }, [apiKey.value]);
  const model = absent.find((one) => one.part === "model");
  const others = absent.filter((one) => one !== model);
  return (
    <section class="hello">
      <h1>{texts.hello}</h1>
      <p>{texts.hint}</p>
      {name && !model && <p class="faint">{texts.models(name)}</p>}
      {model && (
        <p class="notice bad" role="alert">
          {texts.noModel} {model.why}
        </p>
      )}
      {others.length > 0 && (
        <details class="absent">
          <summary>{texts.absent}</summary>
          <ul>
            {others.map(({ part, why }) => (
              <li key={part}>
                <b>{part}</b> {why}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
