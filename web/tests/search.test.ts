import { expect, it } from "vitest";
import { piecesOf } from "../src/search";

it("marks what was found, counted in characters and not in code units", () => {
  const passage = "🜨 Solar grew";
  expect(piecesOf({ passage, marks: [[2, 7]] })).toEqual([
    { text: "🜨 ", isMarked: false },
    { text: "Solar", isMarked: true },
    { text: " grew", isMarked: false },
  ]);
});

it("shows a passage without marks as it is, and an empty one as nothing", () => {
  expect(piecesOf({ passage: "text", marks: [] })).toEqual([{ text: "text", isMarked: false }]);
  expect(piecesOf({ passage: "", marks: [] })).toEqual([]);
});
