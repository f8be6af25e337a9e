import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { ServiceContext } from "../src/components/service";
import { Files } from "../src/components/work/Files";
import { costOf } from "../src/components/work/Totals";

describe("what a run cost", () => {
  it("is shown to the cent from one on, and in two digits below", () => {
    const texts = [123.45, 1, 0.01234].map((cost) => costOf([{ cost }]));
    expect(texts).toEqual(["cost 123.45", "cost 1.00", "cost 0.012"]);
  });

  it("is a least where a price is not known, and nothing where none is", () => {
    expect(costOf([{ cost: 1.5 }, { cost: null }])).toBe("cost at least 1.50");
    expect(costOf([{ cost: null }])).toBe("");
  });
});

describe("the files of a run", () => {
  const artifact = (name: string) => ({ artifact_id: name, name, media_type: "image/png", size: 1, url: `/api/artifacts/${name}` });
  const service = { ask: () => Promise.reject(new Error()), has: () => true, attempt: () => Promise.resolve(true), acts: null, clock: { now: { value: 0 }, watch: () => () => undefined } };
  const picturesOf = (answer: string) => {
    const shown = render(<ServiceContext.Provider value={service as never}><Files artifacts={[artifact("bars.png"), artifact("two bars.png"), artifact("map.png")]} threadId="t" answer={answer} /></ServiceContext.Provider>);
    return [...shown.matchAll(/<span>([^<]*png)<\/span>/g)].map((found) => found[1]);
  };

  it.each([
    ["No figure.", ["bars.png", "two bars.png", "map.png"]],
    ["![Bars](plots/bars.png)", ["two bars.png", "map.png"]],
    ["![Two](<plots/two bars.png> \"Two\") and ![One]( bars.png )", ["map.png"]],
    ["![Two](plots/two%20bars.png) ![Elsewhere](https://e.test/map.png)", ["bars.png", "map.png"]],
  ])("do not show a picture again that the answer shows (%s)", (answer, left) => {
    expect(picturesOf(answer)).toEqual(left);
  });
});
