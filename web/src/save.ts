/** Let the browser save what was answered, under the name that the answer gives it, or else under `name`. */
export async function save(response: Response, name: string): Promise<void> {
  const url = URL.createObjectURL(await response.blob());
  const download = nameIn(response.headers.get("content-disposition")) || name;
  Object.assign(document.createElement("a"), { href: url, download }).click();
  // The browser has begun to save it by the next turn.
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

/** The name that the service gives a file in `Content-Disposition`; "" where it gives none. */
export function nameIn(disposition: string | null): string {
  const encoded = /filename\*=utf-8''([^;\s]+)/i.exec(disposition ?? "")?.[1];
  try {
    return encoded ? decodeURIComponent(encoded) : "";
  } catch {
    return "";
  }
}
