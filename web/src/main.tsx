import { render } from "preact";
import { lookAtAddress, reading } from "./address";
import { showCards } from "./card";
import { App } from "./components/App";
import { Reading } from "./components/report/Reading";
import { ServiceContext } from "./components/service";
import { keepAgreeing, open, openId } from "./conversation";
import { live, share } from "./live";
import { refreshThreads } from "./threads";
import { keepTitle } from "./title";
import { language, words } from "./words";
import "./styles/index.css";

/** Read what the page shows; once more after a key was given. */
export function load(): void {
  void refreshThreads().catch(() => undefined);
  void open(lookAtAddress().thread);
}

/** Follow the address; the report of a conversation that is open is shown over it. */
function go(): void {
  const { thread } = lookAtAddress();
  if (thread !== openId.value) void open(thread);
}

document.documentElement.lang = language;
window.addEventListener("hashchange", go);
render(
  <ServiceContext.Provider value={live}>
    <App onKey={load} />
    <Reading more={[{ name: words.share, work: () => share(reading.value ?? "") }]} />
  </ServiceContext.Provider>,
  document.getElementById("page")!,
);
load();
keepAgreeing();
keepTitle();
showCards();
