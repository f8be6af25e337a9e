import { signal } from "@preact/signals";
import { read } from "./api";

/** A run whose question or answer has the words of a search; `marks` are places in the passage, [start, end]. */
export interface Found {
  run_id: string;
  thread_id: string;
  title: string;
  question: string;
  in_answer: boolean;
  passage: string;
  marks: [number, number][];
}

export const found = signal<Found[]>([]);
let asked = 0;

/** Search questions and answers. Of overlapping requests the later one counts. */
export async function searchTexts(words: string): Promise<void> {
  const turn = ++asked;
  const hits = words.trim() ? (await read<{ hits: Found[] }>(`/api/search?${new URLSearchParams({ q: words.trim() })}`)).hits : [];
  if (turn === asked) found.value = hits;
}

export interface Piece {
  text: string;
  isMarked: boolean;
}

/** A passage in pieces, those that were found marked. The service counts characters, JavaScript code units. */
export function piecesOf({ passage, marks }: Pick<Found, "passage" | "marks">): Piece[] {
  const characters = [...passage];
  const between = (start: number, end: number) => characters.slice(start, end).join("");
  const pieces: Piece[] = [];
  let at = 0;
  for (const [start, end] of marks) {
    pieces.push({ text: between(at, start), isMarked: false }, { text: between(start, end), isMarked: true });
    at = end;
  }
  pieces.push({ text: between(at, characters.length), isMarked: false });
  return pieces.filter((one) => one.text);
}
