import type { BrowserAction, BrowserElement } from "./events";
import { words } from "./words";

/** As much of a value as is said, in characters. */
const LONGEST = 120;

/** Put values for the names in braces of a template, each cut to `longest` characters; nothing for a name that has none. */
export function filled(template: string, values: Record<string, unknown>, longest = LONGEST): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => said(values[name], longest)).trim();
}

/** Say what is done in the browser, such as `clicks “Accept”`. */
export function acting(action: BrowserAction, element: BrowserElement | null | undefined): string {
  const { name, parameters } = action;
  const template = Object.hasOwn(words.actions, name) ? words.actions[name] : undefined;
  if (template === undefined) return `${name} ${said(parameters)}`;
  return filled(template, { ...parameters, element: elementIn(parameters, element) });
}

function elementIn(parameters: Record<string, unknown>, element: BrowserElement | null | undefined): string {
  if (element?.name) return `“${element.name}”`;
  return element?.role || (parameters["index"] === undefined ? "" : `[${said(parameters["index"])}]`);
}

function said(value: unknown, longest = LONGEST): string {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}
