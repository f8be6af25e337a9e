import { render } from "preact";
import { lookAtAddress } from "../address";
import { showTooltips } from "../tooltip";
import { ServiceContext } from "../components/service";
import { language } from "../texts";
import { Player } from "./player";
import { Replay } from "./Replay";
import { serviceIn, sharedIn } from "./shared";
import "../styles/index.css";
import "./replay.css";

const shared = sharedIn(document);
document.documentElement.lang = language;
lookAtAddress();
window.addEventListener("hashchange", lookAtAddress);
const player = new Player(shared);
render(
  <ServiceContext.Provider value={serviceIn(document, player.clock)}>
    <Replay shared={shared} player={player} />
  </ServiceContext.Provider>,
  document.getElementById("page")!,
);
showTooltips();
