import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", { eager: true, query: "?raw", import: "default" });
/** An import or re-export of a module of the page, also one of types only, or one that is loaded later. */
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']+)["']/g;

/** The modules that each module imports. */
function importsOf(modules: Record<string, string>): Map<string, string[]> {
  const found = ([path, text]: [string, string]) =>
    [...text.matchAll(IMPORT)].flatMap(([, target]) => {
      const place = new URL(target!, new URL(path, "file:///web/tests/")).pathname.replace("/web/", "../");
      return [place, `${place}.ts`, `${place}.tsx`].filter((one) => one in modules);
    });
  return new Map(Object.entries(modules).map((one) => [one[0], found(one)]));
}

/** The modules of a cycle of imports, its first one repeated at the end; null if there is none. */
function cycleOf(imports: Map<string, string[]>): string[] | null {
  const done = new Set<string>();
  const visit = (module: string, above: string[]): string[] | null => {
    if (above.includes(module)) return [...above.slice(above.indexOf(module)), module];
    if (done.has(module)) return null;
    for (const next of imports.get(module)!) {
      const cycle = visit(next, [...above, module]);
      if (cycle) return cycle;
    }
    done.add(module);
    return null;
  };
  return [...imports.keys()].reduce<string[] | null>((found, module) => found ?? visit(module, []), null);
}

describe("the modules of the page", () => {
  it("do not import each other in a circle", () => {
    const imports = importsOf(sources);
    expect(imports.get("../src/run.ts")).toContain("../src/turns.ts");
    expect(cycleOf(imports)).toBeNull();
  });

  it.each([
    ["a.ts", { "../src/a.ts": 'import { b } from "./b";', "../src/b.tsx": 'import type { A } from "./a";' }],
    ["c.ts", { "../src/c.ts": 'const d = () => import("./in/d");', "../src/in/d.ts": 'export * from "../c";' }],
  ])("would be found at fault with %s", (name, modules) => {
    expect(cycleOf(importsOf(modules))).toContain(`../src/${name}`);
  });
});
