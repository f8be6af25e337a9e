import { en } from "./words/en";
import { zh } from "./words/zh";

const isChinese = globalThis.navigator?.language.toLowerCase().startsWith("zh");
/** The texts of the page in the browser's language. */
export const words = isChinese ? zh : en;
export const language = isChinese ? "zh" : "en";
