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

export const language = preferred();
/** The texts of the page in its language. */
export const texts = language === "zh" ? zh : en;

/** Show the page in another language; it is loaded again, because its texts are fixed when it starts. */
export function chooseLanguage(chosen: string): void {
  remember(STORAGE_KEY, chosen);
  location.reload();
}
