import type { Service } from "./components/service";
import { texts } from "./texts";

const ADDRESS = /^(?:[A-Za-z][A-Za-z0-9+.-]*:|\/\/|#)/;

/** The workspace path of an image's target; "" for a URL or an invalid path. */
export function figurePath(target: string): string {
  let name: string;
  try {
    name = decodeURIComponent(target);
  } catch {
    return "";
  }
  if (ADDRESS.test(name)) return "";
  name = name.replace(/^\/workspace\//, "");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  return name.startsWith("/") || parts.includes("..") ? "" : parts.join("/");
}

/** The figures of a run's report. They are fetched, because they need the API key. */
export class Figures {
  #urls = new Map<string, string>();
  #asked = new Map<string, Promise<string>>();
  #failed = new Set<string>();
  #isClosed = false;

  constructor(
    private readonly service: Service,
    private readonly runId: string,
  ) {}

  /** Show the figures in `place`. A missing one is replaced by its caption, with a note once the text `isWritten`. */
  fill(place: ParentNode, isWritten: boolean): void {
    if (isWritten) for (const path of this.#failed) this.#asked.delete(path);
    if (isWritten) this.#failed.clear();
    for (const one of place.querySelectorAll<HTMLElement>("span.figure:not(.shown, .missing)")) void this.#show(one, isWritten);
  }

  /** Release all of them. */
  close(): void {
    this.#isClosed = true;
    for (const url of this.#urls.values()) URL.revokeObjectURL(url);
    this.#urls.clear();
  }

  async #show(place: HTMLElement, isWritten: boolean): Promise<void> {
    const path = place.dataset["path"] ?? "";
    const known = this.#urls.get(path);
    // Immediately, because a growing text is rendered repeatedly.
    if (known) return shown(place, known);
    try {
      shown(place, await this.#get(path));
    } catch {
      this.#failed.add(path);
      if (isWritten) missing(place, path);
    }
  }

  #get(path: string): Promise<string> {
    const asked = this.#asked.get(path) ?? this.#load(path);
    this.#asked.set(path, asked);
    return asked;
  }

  async #load(path: string): Promise<string> {
    const named = path.split("/").map(encodeURIComponent).join("/");
    const address = `/api/runs/${encodeURIComponent(this.runId)}/figures/${named}`;
    if (!this.service.has(address)) throw new Error(path);
    const blob = await (await this.service.ask(address)).blob();
    if (this.#isClosed) throw new Error(path);
    const url = URL.createObjectURL(blob);
    this.#urls.set(path, url);
    return url;
  }
}

function shown(place: HTMLElement, url: string): void {
  const caption = place.textContent;
  const image = Object.assign(document.createElement("img"), { src: url, alt: caption });
  const isAlone = place.parentElement?.tagName === "P" && place.parentElement.childNodes.length === 1;
  const below = Object.assign(document.createElement("span"), { className: "caption", textContent: caption });
  place.replaceChildren(image, ...(isAlone && caption ? [below] : []));
  place.classList.add("shown", ...(isAlone ? ["alone"] : []));
}

function missing(place: HTMLElement, path: string): void {
  place.append(` (${texts.figureMissing.replace("{}", () => path)})`);
  place.classList.add("missing");
}
