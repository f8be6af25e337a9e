import Anser from "anser";

/** A piece of a terminal's text that looks alike; `colour` and `ground` are CSS colours beyond the sixteen with names. */
export interface Run {
  text: string;
  classes: string;
  colour?: string;
  ground?: string;
}

/** A longer text is shown without its colours. */
const LONGEST = 100_000;
// Titles and links of terminals; what moves the cursor the library takes out.
const TITLES = /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const STEPS = [0, 95, 135, 175, 215, 255];

/** What a program printed, as a terminal would show it: colours, and lines that were written over. */
export function runsOf(text: string): Run[] {
  if (text.length > LONGEST || !/[\r\u001b]/.test(text)) return [{ text, classes: "" }];
  const shown = text.replace(TITLES, "").split("\n").map(overwritten).join("\n");
  return Anser.ansiToJson(shown, { use_classes: true, remove_empty: true }).map((part) => {
    const decorations = part.decorations.map((one) => `ansi-${one}`);
    const run: Run = { text: part.content, classes: [part.fg, part.bg && `${part.bg}-bg`, ...decorations].filter(Boolean).join(" ") };
    const [colour, ground] = [colourOf(part.fg, part.fg_truecolor), colourOf(part.bg, part.bg_truecolor)];
    if (colour) run.colour = colour;
    if (ground) run.ground = ground;
    return run;
  });
}

/** A line of which a bar of progress was drawn again and again: the last one stays. */
function overwritten(line: string): string {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}

function colourOf(name: string | null, truecolor: string | null): string | undefined {
  if (name === "ansi-truecolor" && truecolor) return `rgb(${truecolor})`;
  const number = Number(/^ansi-palette-(\d+)$/.exec(name ?? "")?.[1] ?? Number.NaN);
  if (!(number >= 16 && number < 256)) return undefined;
  if (number >= 232) return `rgb(${Array(3).fill(8 + 10 * (number - 232)).join(", ")})`;
  const cube = number - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((one) => STEPS[one]).join(", ")})`;
}
