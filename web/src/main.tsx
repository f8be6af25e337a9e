import { keepFocus } from "./components/focus";
import { render } from "preact";
import { lookAtAddress, reading } from "./address";
import { shareKey } from "./api";
import { showTooltips } from "./tooltip";
import { App } from "./components/App";
import { Reading } from "./components/report/Reading";
import { ServiceContext } from "./components/service";
import { keepAgreeing, open, openId } from "./conversation";
import { live, share } from "./backend";
import { refreshThreads } from "./threads";
import { showTabStatus } from "./tabStatus";
import { language, texts } from "./texts";
import { useStoredTheme } from "./theme";
import "./styles/index.css";
import "./styles/formulas.css";

/** Load the data of the page; again after a key was entered. */
export function load(): void {
  void refreshThreads().catch(() => undefined);
  void open(lookAtAddress().thread);
}

/** Follow the URL; a report is shown over its conversation. */
function go(): void {
  const { thread } = lookAtAddress();
  if (thread !== openId.value) void open(thread);
}

/** The page in its language; in another one all of it is drawn anew. */
function Page() {
  document.documentElement.lang = language.value;
  return (
    <ServiceContext.Provider key={language.value} value={live}>
      <App onKey={load} />
      <Reading more={[{ name: texts.share, work: () => share(reading.value ?? "") }]} />
    </ServiceContext.Provider>
  );
}

useStoredTheme();
window.addEventListener("hashchange", go);
render(<Page />, document.getElementById("page")!);
shareKey(load);
load();
keepAgreeing();
showTabStatus();
showTooltips();
keepFocus();
