const fallback = new Map<string, string>();

/** What this tab keeps under a name until it is closed; "" when there is nothing. */
export function kept(name: string): string {
  try {
    return sessionStorage.getItem(name) ?? fallback.get(name) ?? "";
  } catch {
    // A browser may refuse to keep anything of a page, and its room may be full.
    return fallback.get(name) ?? "";
  }
}

/** Keep a text; "" forgets it. Without the browser's storage it is kept until the page is left. */
export function keep(name: string, text: string): void {
  fallback.delete(name);
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    if (text) fallback.set(name, text);
  }
}
