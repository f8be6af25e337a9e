import { signal } from "@preact/signals";
import { readStored, writeStored } from "./storage";

const STORAGE_KEY = "maniple.limits";
const SECONDS_PER_MINUTE = 60;
const FIELDS = ["minutes", "tokens", "cost"] as const;
export type Limit = (typeof FIELDS)[number];

/** The limits of a run, as in `budget` of a request. Null: as the settings of the service say. */
export interface Budget {
  seconds: number | null;
  tokens: number | null;
  cost: number | null;
}

/** What the person typed as limits of the next runs in this tab, by field; an empty text is no limit. */
export const limits = signal<Readonly<Record<Limit, string>>>(stored());

export function setLimit(name: Limit, text: string): void {
  limits.value = { ...limits.value, [name]: text };
  writeStored(STORAGE_KEY, FIELDS.map((field) => limits.value[field]).join("\n").trimEnd());
}

/**
 * The limits for the next run; null if none is set. What is no positive number limits nothing, and neither does a cost
 * while prices are not known: its field is not shown then.
 */
export function chosenBudget(hasPrices: boolean): Budget | null {
  const [minutes, tokens, cost] = FIELDS.map((name) => (name === "cost" && !hasPrices ? null : amount(limits.value[name])));
  if (!minutes && !tokens && !cost) return null;
  return { seconds: minutes ? minutes * SECONDS_PER_MINUTE : null, tokens: tokens ? Math.max(1, Math.round(tokens)) : null, cost: cost ?? null };
}

function amount(text: string): number | null {
  const number = Number(text);
  return Number.isFinite(number) && number > 0 ? number : null;
}

function stored(): Record<Limit, string> {
  const [minutes = "", tokens = "", cost = ""] = readStored(STORAGE_KEY).split("\n");
  return { minutes, tokens, cost };
}
