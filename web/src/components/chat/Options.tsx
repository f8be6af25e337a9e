import { type Signal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { type RunChoices, openId } from "../../conversation";
import { type Limit, chosenBudget, limits, setLimit } from "../../limits";
import { isReviewing, setReviewing } from "../../reviewing";
import { readRemembered, readStored, remember, writeStored } from "../../storage";
import { members } from "../../members";
import { chooseModel, chosenModel, hasPrices, models } from "../../models";
import { texts } from "../../texts";
import { useDismissal } from "../dismissal";

const isDeep = chosen("deep");
const searchesFirst = chosen("search");
const leftOut = signal<ReadonlySet<string>>(new Set(readStored("maniple.left-out").split("\n").filter(Boolean)));

const depth = remembered("depth", texts.depths);
const style = remembered("style", texts.styles);
const effort = remembered("effort", texts.efforts);

/** One of several words that this browser remembers; "" leaves it to the service. */
function remembered(name: string, words: Record<string, string>): { choice: Signal<string>; choose: (word: string) => void } {
  const key = `maniple.${name}`;
  const stored = readRemembered(key);
  const choice = signal(Object.hasOwn(words, stored) ? stored : "");
  const choose = (word: string) => {
    choice.value = word;
    remember(key, word);
  };
  return { choice, choose };
}

/** An option of this tab, and the function that stores it. */
function chosen(name: string): { choice: Signal<boolean>; toggle: () => void } {
  const choice = signal(readStored(`maniple.${name}`) !== "");
  const toggle = () => {
    choice.value = !choice.value;
    writeStored(`maniple.${name}`, choice.value ? "yes" : "");
  };
  return { choice, toggle };
}

/** The user's options for the next question. */
export function chosenOptions(): RunChoices {
  const team = members.value.map((one) => one.name).filter((name) => !leftOut.value.has(name));
  return {
    deep_thinking_mode: isDeep.choice.value,
    search_before_planning: searchesFirst.choice.value,
    auto_accepted_plan: !isReviewing(openId.value),
    depth: depth.choice.value || null,
    report_style: style.choice.value || null,
    effort: effort.choice.value || null,
    budget: chosenBudget(hasPrices.value),
    model: chosenModel.value || null,
    team_members: leftOut.value.size > 0 && team.length > 0 ? team : null,
  };
}

/** The options for the next question. */
export function Options() {
  const reviews = isReviewing(openId.value);
  const toggles = [
    { isOn: isDeep.choice.value, toggle: isDeep.toggle, name: texts.deep },
    { isOn: searchesFirst.choice.value, toggle: searchesFirst.toggle, name: texts.searchFirst },
    { isOn: reviews, toggle: () => setReviewing(openId.value, !reviews), name: texts.review },
  ];
  return (
    <>
      {toggles.map(({ isOn, toggle, name }) => (
        <button key={name} type="button" class="chip" aria-pressed={isOn} onClick={toggle}>
          {name}
        </button>
      ))}
      <Words name={texts.depth} words={texts.depths} of={depth} />
      <Words name={texts.style} words={texts.styles} of={style} />
      <ModelChoice />
      <Words name={texts.effort} words={texts.efforts} of={effort} />
      <Team />
      <Limits />
    </>
  );
}

interface Choice {
  name: string;
  words: Record<string, string>;
  of: ReturnType<typeof remembered>;
}

/** A choice among words; the first leaves it to the service. */
function Words({ name, words, of: { choice, choose } }: Choice) {
  return (
    <select class={`chip ${choice.value ? "chosen-some" : ""}`} aria-label={name} title={name} value={choice.value} onChange={(e) => choose(e.currentTarget.value)}>
      <option value="">{name}</option>
      {Object.entries(words).map(([value, text]) => (
        <option key={value} value={value}>{text}</option>
      ))}
    </select>
  );
}

/** The model of the next runs; the first choice leaves it to the service. There is none among one model. */
function ModelChoice() {
  const names = (models.value?.models ?? []).map((one) => one.name);
  if (names.length < 2) return null;
  return (
    <select class={`chip ${chosenModel.value ? "chosen-some" : ""}`} aria-label={texts.model} title={texts.model} value={chosenModel.value} onChange={(e) => chooseModel(e.currentTarget.value)}>
      <option value="">{texts.model}</option>
      {names.map((name) => (
        <option key={name} value={name}>{name}</option>
      ))}
    </select>
  );
}

function Team() {
  return (
    <Menu kind="team" name={texts.team} isSome={leftOut.value.size > 0}>
      {members.value.map((one) => (
        <label key={one.name} title={one.desc}>
          <input type="checkbox" checked={!leftOut.value.has(one.name)} disabled={!one.is_optional} onChange={() => choose(one.name)} />
          {one.name}
        </label>
      ))}
    </Menu>
  );
}

/** The limits of the next run, which can only lower those of the service. */
function Limits() {
  return (
    <Menu kind="limits" name={texts.limits} isSome={chosenBudget(hasPrices.value) !== null}>
      {(Object.entries(texts.limitNames) as [Limit, string][]).filter(([name]) => name !== "cost" || hasPrices.value).map(([name, text]) => (
        <label key={name}>
          <input type="number" min="0" step="any" inputMode="decimal" value={limits.value[name]} onInput={(e) => setLimit(name, e.currentTarget.value)} />
          {text}
        </label>
      ))}
      <p class="faint">{texts.limitsHint}</p>
    </Menu>
  );
}

interface MenuParts {
  kind: string;
  name: string;
  /** Whether something in it differs from what the service does by itself. */
  isSome: boolean;
  children: ComponentChildren;
}

/** Choices that open above the composer. */
function Menu({ kind, name, isSome, children }: MenuParts) {
  const menu = useRef<HTMLDetailsElement>(null);
  useDismissal(menu);
  return (
    <details class={`choices ${kind}`} ref={menu}>
      <summary class={`chip ${isSome ? "chosen-some" : ""}`}>
        {name} <span aria-hidden="true">▾</span>
      </summary>
      <fieldset>
        <legend class="unseen">{name}</legend>
        {children}
      </fieldset>
    </details>
  );
}

function choose(name: string): void {
  const left = new Set(leftOut.value);
  if (!left.delete(name)) left.add(name);
  leftOut.value = left;
  writeStored("maniple.left-out", [...left].join("\n"));
}
