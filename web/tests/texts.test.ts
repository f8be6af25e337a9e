import { expect, it } from "vitest";
import { en } from "../src/texts/en";
import { zh } from "../src/texts/zh";

interface Words {
  [name: string]: string | Words | ((...given: never[]) => string);
}

/** Each text by its path; what takes numbers and names is called with some. */
function texts(words: Words, path = ""): [string, string][] {
  return Object.entries(words).flatMap(([name, one]): [string, string][] => {
    if (typeof one === "string") return [[path + name, one]];
    if (typeof one === "object") return texts(one, `${path}${name}.`);
    return [[path + name, (one as (...given: unknown[]) => string)(2, 2, 2)]];
  });
}

it("says everything in Chinese, too", () => {
  const english = new Map(texts(en as Words));
  const chinese = texts(zh as Words);
  expect(chinese.map(([path]) => path)).toEqual([...english.keys()]);
  const left = chinese.filter(([path, text]) => text === english.get(path) || !/\p{Script=Han}/u.test(text));
  expect(left).toEqual([]);
});

it("leaves the punctuation between texts to the language", () => {
  const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", eager: true, import: "default" });
  const own = Object.entries(sources).filter(([, code]) => /texts(\.\w+|\[.*?\])+\}[:,;] ?[{$"`<]/.test(code));
  expect(own.map(([path]) => path)).toEqual([]);
  expect(Object.keys(sources).length).toBeGreaterThan(50);
});

it("uses full-width punctuation in Chinese", () => {
  const half = texts(zh as Words).filter(([, text]) => /\p{Script=Han}[,:;?!()]|[,:;?!()]\p{Script=Han}|[,:;][^\s\w"'}]/u.test(text));
  expect(half).toEqual([]);
});
