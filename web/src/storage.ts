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

/** The text that this browser stores under a name, in all of its tabs; "" if there is none. */
export function readRemembered(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Store a text for all tabs of this browser; "" deletes it. Without local storage it is forgotten. */
export function remember(name: string, text: string): void {
  try {
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
  } catch {
    // Local storage may be disabled or full.
  }
}
