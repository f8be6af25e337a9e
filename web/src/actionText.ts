import type { BrowserAction, BrowserElement } from "./events";
import { texts } from "./texts";

/** The maximum length of a value, in characters. */
const LONGEST = 120;

/** Replace the names in braces of a template by values, cut to `longest` characters; missing ones by "". */
export function filled(template: string, values: Record<string, unknown>, longest = LONGEST): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => said(values[name], longest)).trim();
}

/** Describe a browser action, such as `clicks “Accept”`. */
export function describeAction(action: BrowserAction, element: BrowserElement | null | undefined): string {
  const { name, parameters } = action;
  const template = Object.hasOwn(texts.actions, name) ? texts.actions[name] : undefined;
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
