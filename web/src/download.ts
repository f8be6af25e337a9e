/** Save a response as a file, under the name that it declares, or else `name`. */
export async function save(response: Response, name: string): Promise<void> {
  const url = URL.createObjectURL(await response.blob());
  const download = nameIn(response.headers.get("content-disposition")) || name;
  Object.assign(document.createElement("a"), { href: url, download }).click();
  // The browser starts the download before the next macrotask.
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

/** The file name in `Content-Disposition`; "" if there is none. */
export function nameIn(disposition: string | null): string {
  const encoded = /filename\*=utf-8''([^;\s]+)/i.exec(disposition ?? "")?.[1];
  try {
    return encoded ? decodeURIComponent(encoded) : "";
  } catch {
    return "";
  }
}
