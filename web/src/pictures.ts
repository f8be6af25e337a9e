/** A cache of fetched pictures as object URLs, with the most recently used ones. */
export class Pictures {
  #cached = new Map<string, Promise<string>>();

  constructor(
    private readonly load: (address: string) => Promise<Blob>,
    private readonly most = 30,
  ) {}

  /** Return the picture of a service URL. Throws if it cannot be fetched; the next call tries again. */
  get(address: string): Promise<string> {
    const known = this.#cached.get(address);
    const url = known ?? this.load(address).then((blob) => URL.createObjectURL(blob));
    this.#cached.delete(address);
    this.#cached.set(address, url);
    if (!known) url.catch(() => this.#cached.get(address) === url && this.#cached.delete(address));
    if (this.#cached.size > this.most) this.#drop(this.#cached.keys().next().value!);
    return url;
  }

  /** Release all of them. */
  clear(): void {
    for (const address of [...this.#cached.keys()]) this.#drop(address);
  }

  #drop(address: string): void {
    const url = this.#cached.get(address);
    this.#cached.delete(address);
    url?.then(URL.revokeObjectURL, () => undefined);
  }
}
