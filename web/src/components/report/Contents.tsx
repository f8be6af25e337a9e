import { useEffect, useState } from "preact/hooks";
import { texts } from "../../texts";

/** A text with fewer headings has no table of contents. */
const FEWEST = 3;
/** The distance from the top, in pixels, that counts as the reading position. */
const EYES = 120;

/** The headings of a rendered text, without its title. */
export function headingsIn(place: Element): HTMLElement[] {
  const headings = [...place.querySelectorAll<HTMLElement>("h1, h2, h3, h4")];
  const titles = headings.filter((one) => one.matches("h1"));
  const shown = titles.length === 1 && headings[0] === titles[0] ? headings.slice(1) : headings;
  return shown.length < FEWEST ? [] : shown;
}

interface Shown {
  headings: readonly HTMLElement[];
  /** The element that scrolls the report. */
  view: HTMLElement;
  /** Whether it is folded in a wide window, too. */
  isFolded?: boolean;
}

/** The table of contents of a report; the current section is marked. */
export function Contents({ headings, view, isFolded = false }: Shown) {
  const [current, setCurrent] = useState(0);
  const [isWide, setWide] = useState(() => matchMedia("(min-width: 64rem)").matches);
  useEffect(() => {
    const look = () => setCurrent(Math.max(0, passed(headings, view.getBoundingClientRect().top + EYES) - 1));
    look();
    view.addEventListener("scroll", look, { passive: true });
    return () => view.removeEventListener("scroll", look);
  }, [headings, view]);
  useEffect(() => {
    const width = matchMedia("(min-width: 64rem)");
    const look = () => setWide(width.matches);
    width.addEventListener("change", look);
    return () => width.removeEventListener("change", look);
  }, []);
  if (headings.length === 0) return null;
  const highest = Math.min(...headings.map(levelOf));
  return (
    <nav class="contents" aria-label={texts.contents}>
      <details open={isWide && !isFolded}>
        <summary>{texts.contents}</summary>
        <ol>
          {headings.map((heading, index) => (
            <li key={index} class={`deep${Math.min(levelOf(heading) - highest, 2)}`}>
              <button aria-current={index === current ? "location" : undefined} onClick={() => goTo(heading)}>
                {heading.textContent}
              </button>
            </li>
          ))}
        </ol>
      </details>
    </nav>
  );
}

const levelOf = (heading: HTMLElement) => Number(heading.tagName.charAt(1));

/** The number of the ordered `headings` that begin above `line`. */
function passed(headings: readonly HTMLElement[], line: number): number {
  let [low, high] = [0, headings.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (headings[middle]!.getBoundingClientRect().top <= line) low = middle + 1;
    else high = middle;
  }
  return low;
}

function goTo(heading: HTMLElement): void {
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "start" });
}
