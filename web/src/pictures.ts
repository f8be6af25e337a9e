/** Pictures that were fetched, as addresses that the browser can show; those that were wanted last are kept. */
export class Pictures {
  #kept = new Map<string, Promise<string>>();

  constructor(
    private readonly load: (address: string) => Promise<Blob>,
    private readonly most = 30,
  ) {}

  /** Give the picture at an address of the service. Throws when it cannot be had; it is tried again when it is wanted again. */
  get(address: string): Promise<string> {
    const known = this.#kept.get(address);
    const url = known ?? this.load(address).then((blob) => URL.createObjectURL(blob));
    this.#kept.delete(address);
    this.#kept.set(address, url);
    if (!known) url.catch(() => this.#kept.get(address) === url && this.#kept.delete(address));
    if (this.#kept.size > this.most) this.#drop(this.#kept.keys().next().value!);
    return url;
  }

  /** Give back the memory of all of them. */
  clear(): void {
    for (const address of [...this.#kept.keys()]) this.#drop(address);
  }

  #drop(address: string): void {
    const url = this.#kept.get(address);
    this.#kept.delete(address);
    url?.then(URL.revokeObjectURL, () => undefined);
  }
}
