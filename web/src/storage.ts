const fallback = new Map<string, string>();

/** The text that this tab stores under a name; "" if there is none. */
export function readStored(name: string): string {
  try {
    return sessionStorage.getItem(name) ?? fallback.get(name) ?? "";
  } catch {
    // Session storage may be disabled or full.
    return fallback.get(name) ?? "";
  }
}

/** Store a text; "" deletes it. Without session storage, it is kept in memory. */
export function writeStored(name: string, text: string): void {
  fallback.delete(name);
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    if (text) fallback.set(name, text);
  }
}
