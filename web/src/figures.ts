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

/** The address of a figure at the service. */
export function figureAddress(runId: string, path: string): string {
  return `/api/runs/${encodeURIComponent(runId)}/figures/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** The figures of a run's report. They are fetched, because they need the API key. */
export class Figures {
  #urls = new Map<string, string>();
  #asked = new Map<string, Promise<string>>();
  #failed = new Set<string>();
  #isClosed = false;

  constructor(private readonly service: Service) {}

  /** Show the figures in `place`. A missing one is replaced by its caption, with a note once the text `isWritten`. */
  fill(place: ParentNode, isWritten: boolean): void {
    if (isWritten) for (const address of this.#failed) this.#asked.delete(address);
    if (isWritten) this.#failed.clear();
    for (const one of place.querySelectorAll<HTMLImageElement>("img[data-address]:not([src])")) void this.#show(one, isWritten);
  }

  /** Release all of them. */
  close(): void {
    this.#isClosed = true;
    for (const url of this.#urls.values()) URL.revokeObjectURL(url);
    this.#urls.clear();
  }

  async #show(image: HTMLImageElement, isWritten: boolean): Promise<void> {
    const address = image.dataset["address"]!;
    const known = this.#urls.get(address);
    // Immediately, because a growing text is rendered repeatedly.
    if (known) return void (image.src = known);
    try {
      image.src = await this.#get(address);
    } catch {
      this.#failed.add(address);
      if (isWritten) missing(image);
    }
  }

  #get(address: string): Promise<string> {
    const asked = this.#asked.get(address) ?? this.#load(address);
    this.#asked.set(address, asked);
    return asked;
  }

  async #load(address: string): Promise<string> {
    if (!this.service.has(address)) throw new Error(address);
    const blob = await (await this.service.ask(address)).blob();
    if (this.#isClosed) throw new Error(address);
    const url = URL.createObjectURL(blob);
    this.#urls.set(address, url);
    return url;
  }
}

/** Replace a picture that could not be loaded by its caption, with its path. */
function missing(image: HTMLImageElement): void {
  const path = decodeURIComponent(image.dataset["address"]!.split("/").slice(5).join("/"));
  const note = `(${texts.figureMissing.replace("{}", () => path)})`;
  const hasCaption = image.nextElementSibling?.className === "caption";
  image.replaceWith(Object.assign(document.createElement("span"), { className: "missing", textContent: hasCaption ? note : `${image.alt} ${note}` }));
}
