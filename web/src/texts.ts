import { signal } from "@preact/signals";
import { readRemembered, remember } from "./storage";
import { en } from "./texts/en";
import { zh } from "./texts/zh";

const STORAGE_KEY = "maniple.language";
/** The languages of the page, each by its own name. */
export const LANGUAGES = { en: "English", zh: "中文" };
export type Language = keyof typeof LANGUAGES;

/** The language that the person chose in this browser, else that of the browser. */
function preferred(): Language {
  const chosen = readRemembered(STORAGE_KEY);
  if (Object.hasOwn(LANGUAGES, chosen)) return chosen as Language;
  return globalThis.navigator?.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const language = signal(preferred());
/** The texts of the page in its language. They are read while the page is drawn, because they change with it. */
export const texts: typeof en = { ...textsOf(language.value) };

/** A text after its label, with the punctuation of the language. */
export function labelled(label: string, text: string): string {
  return language.value === "zh" ? `${label}：${text}` : `${label}: ${text}`;
}

/** Names one after another, with the punctuation of the language. */
export function listed(names: Iterable<string>): string {
  return [...names].join(language.value === "zh" ? "、" : ", ");
}

function textsOf(chosen: Language): typeof en {
  return chosen === "zh" ? zh : en;
}

/** Show the page in another language. What is drawn is drawn anew; drafts and chosen files stay. */
export function chooseLanguage(chosen: Language): void {
  remember(STORAGE_KEY, chosen);
  Object.assign(texts, textsOf(chosen));
  language.value = chosen;
}
