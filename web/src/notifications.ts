import { signal } from "@preact/signals";
import { readRemembered, remember } from "./storage";

const STORAGE_KEY = "maniple.notify";

/** Whether the browser can show notifications at all. */
export const canNotify = "Notification" in globalThis;
/** Whether the person wants notifications, and the browser allows them. */
export const isNotified = signal(canNotify && readRemembered(STORAGE_KEY) !== "" && Notification.permission === "granted");

/** Turn notifications on or off; returns false if the browser does not allow them. */
export async function setNotified(wanted: boolean): Promise<boolean> {
  const isAllowed = !wanted || (await Notification.requestPermission()) === "granted";
  isNotified.value = wanted && isAllowed;
  remember(STORAGE_KEY, isNotified.value ? "yes" : "");
  return isAllowed;
}

/** Show a notification, which replaces an earlier one about the same run; a click on it opens the tab. */
export function notify(title: string, body: string, runId: string): void {
  try {
    const shown = new Notification(title, { body, tag: runId, icon: "./icon.svg" });
    shown.onclick = () => (window.focus(), shown.close());
  } catch {
    // Some browsers for phones have the class and refuse to construct it.
  }
}
