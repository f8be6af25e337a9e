/** Let the browser save what was answered, under the name that the answer gives it, or else under `name`. */
export async function save(response: Response, name: string): Promise<void> {
  const url = URL.createObjectURL(await response.blob());
  const told = /filename\*=utf-8''([^;]+)/i.exec(response.headers.get("content-disposition") ?? "");
  const link = Object.assign(document.createElement("a"), { href: url, download: told ? decodeURIComponent(told[1]!) : name });
  link.click();
  // The browser has begun to save it by the next turn.
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}
