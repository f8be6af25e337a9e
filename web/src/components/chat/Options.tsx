import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Wishes } from "../../conversation";
import { members } from "../../members";
import { words } from "../../words";
import { useDismissed } from "../dismissed";

const isDeep = signal(false);
const searchesFirst = signal(false);
const reviews = signal(false);
const leftOut = signal<ReadonlySet<string>>(new Set());

/** What the person has chosen for the next question. */
export function usualWishes(): Wishes {
  const chosen = members.value.map((one) => one.name).filter((name) => !leftOut.value.has(name));
  return {
    deep_thinking_mode: isDeep.value,
    search_before_planning: searchesFirst.value,
    auto_accepted_plan: !reviews.value,
    team_members: leftOut.value.size > 0 ? chosen : null,
  };
}

/** How the next question is to be worked on. */
export function Options() {
  const toggles = [
    { choice: isDeep, name: words.deep },
    { choice: searchesFirst, name: words.searchFirst },
    { choice: reviews, name: words.review },
  ];
  return (
    <>
      {toggles.map(({ choice, name }) => (
        <button key={name} type="button" class="chip" aria-pressed={choice.value} onClick={() => (choice.value = !choice.value)}>
          {name}
        </button>
      ))}
      <Team />
    </>
  );
}

function Team() {
  const menu = useRef<HTMLDetailsElement>(null);
  useDismissed(menu);
  return (
    <details class="team" ref={menu}>
      <summary class={`chip ${leftOut.value.size > 0 ? "chosen-some" : ""}`}>
        {words.team} <span aria-hidden="true">▾</span>
      </summary>
      <fieldset>
        <legend class="unseen">{words.team}</legend>
        {members.value.map((one) => (
          <label key={one.name} title={one.desc}>
            <input type="checkbox" checked={!leftOut.value.has(one.name)} disabled={!one.is_optional} onChange={() => choose(one.name)} />
            {one.name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function choose(name: string): void {
  const left = new Set(leftOut.value);
  if (!left.delete(name)) left.add(name);
  leftOut.value = left;
}
