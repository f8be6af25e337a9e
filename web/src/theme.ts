import { signal } from "@preact/signals";
import { readRemembered, remember } from "./storage";

const STORAGE_KEY = "maniple.theme";
export type Theme = "" | "light" | "dark";

const system = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
/** Called when the page may have become light or dark. */
const listeners = new Set<() => void>();
system?.addEventListener("change", notify);

/** The theme that the person chose in this browser; "" follows the system. */
export const theme = signal<Theme>("");

/** Show the stored theme, in this tab and whenever another one changes it. */
export function useStoredTheme(): void {
  show(asTheme(readRemembered(STORAGE_KEY)));
  addEventListener("storage", ({ key, newValue }) => key === STORAGE_KEY && show(asTheme(newValue)));
}

export function chooseTheme(chosen: string): void {
  remember(STORAGE_KEY, asTheme(chosen));
  show(asTheme(chosen));
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  return theme.value === "" ? (system?.matches ?? false) : theme.value === "dark";
}

/** Call `listener` when the page may have become light or dark, until the returned function is called. */
export function watchTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function asTheme(text: string | null): Theme {
  return text === "light" || text === "dark" ? text : "";
}

function show(chosen: Theme): void {
  theme.value = chosen;
  if (chosen) document.documentElement.dataset["theme"] = chosen;
  else delete document.documentElement.dataset["theme"];
  notify();
}

function notify(): void {
  for (const listener of [...listeners]) listener();
}
