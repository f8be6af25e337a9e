import { en } from "./texts/en";
import { zh } from "./texts/zh";

const isChinese = globalThis.navigator?.language.toLowerCase().startsWith("zh");
/** The texts of the page in the browser's language. */
export const texts = isChinese ? zh : en;
export const language = isChinese ? "zh" : "en";
