/** The number of the event at whose moment a run is opened, by the address `#event=NUMBER`; null for none. */
export function eventIn(hash: string): number | null {
  const found = /^#event=(\d{1,15})$/.exec(hash);
  return found ? Number(found[1]) : null;
}

/** Make the address lead to the moment of an event; without one, to the end of the run. */
export function showInAddress(event: number | null): void {
  history.replaceState(null, "", event === null ? location.href.replace(/#.*/, "") : `#event=${event}`);
}
