import { render } from "preact";
import { App } from "./components/App";
import { ServiceContext } from "./components/service";
import { keepAgreeing, open } from "./conversation";
import { live } from "./live";
import { refreshThreads } from "./threads";
import { keepTitle } from "./title";
import { language } from "./words";
import "./styles/index.css";

const here = () => (location.hash.length > 1 ? decodeURIComponent(location.hash.slice(1)) : null);

/** Read what the page shows; once more after a key was given. */
export function load(): void {
  void refreshThreads().catch(() => undefined);
  void open(here());
}

document.documentElement.lang = language;
window.addEventListener("hashchange", () => void open(here()));
render(
  <ServiceContext.Provider value={live}>
    <App onKey={load} />
  </ServiceContext.Provider>,
  document.getElementById("page")!,
);
load();
keepAgreeing();
keepTitle();
