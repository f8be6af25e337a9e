import Anser from "anser";

/** A piece of terminal text with one style; `colour` and `ground` are CSS colours other than the sixteen named ones. */
export interface Run {
  text: string;
  classes: string;
  colour?: string;
  ground?: string;
}

/** A longer text is shown without colours. */
const LONGEST = 100_000;
// Terminal titles and links; the library removes cursor movements.
const TITLES = /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const STEPS = [0, 95, 135, 175, 215, 255];

/** The output of a program as a terminal shows it, with colours and overwritten lines. */
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

/** Of a line that a progress bar rewrote repeatedly, only the last state is kept. */
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
