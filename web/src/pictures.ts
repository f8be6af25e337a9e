/** A cache of fetched pictures as object URLs, with the most recently used ones. */
export class Pictures {
  #kept = new Map<string, Promise<string>>();

  constructor(
    private readonly load: (address: string) => Promise<Blob>,
    private readonly most = 30,
  ) {}

  /** Return the picture of a service URL. Throws if it cannot be fetched; the next call tries again. */
  get(address: string): Promise<string> {
    const known = this.#kept.get(address);
    const url = known ?? this.load(address).then((blob) => URL.createObjectURL(blob));
    this.#kept.delete(address);
    this.#kept.set(address, url);
    if (!known) url.catch(() => this.#kept.get(address) === url && this.#kept.delete(address));
    if (this.#kept.size > this.most) this.#drop(this.#kept.keys().next().value!);
    return url;
  }

  /** Release all of them. */
  clear(): void {
    for (const address of [...this.#kept.keys()]) this.#drop(address);
  }

  #drop(address: string): void {
    const url = this.#kept.get(address);
    this.#kept.delete(address);
    url?.then(URL.revokeObjectURL, () => undefined);
  }
}
