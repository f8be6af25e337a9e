import { describe, expect, it } from "vitest";
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
