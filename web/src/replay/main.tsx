import { keepFocus } from "../components/focus";
import { render } from "preact";
import { lookAtAddress } from "../address";
import { showTooltips } from "../tooltip";
import { ServiceContext } from "../components/service";
import { language } from "../texts";
import { eventIn } from "./moment";
import { Player } from "./player";
import { Replay } from "./Replay";
import { serviceIn, sharedIn } from "./shared";
import "../styles/index.css";
import "./replay.css";

const shared = sharedIn(document);
document.documentElement.lang = language.value;
const player = new Player(shared);
const look = () => {
  lookAtAddress();
  const event = eventIn(location.hash);
  if (event !== null) player.seekEvent(event);
};
look();
window.addEventListener("hashchange", look);
render(
  <ServiceContext.Provider value={serviceIn(document, player.clock)}>
    <Replay shared={shared} player={player} />
  </ServiceContext.Provider>,
  document.getElementById("page")!,
);
showTooltips();
keepFocus();
