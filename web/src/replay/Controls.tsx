import { texts } from "../texts";
import { showInAddress } from "./moment";
import type { Player } from "./player";

const SPEEDS = [1, 4, 16];
/** The step of an arrow key in milliseconds. */
const STEP = 500;

/** The controls of a replay: play and pause, position, speed, and skip to the end. */
export function Controls({ player }: { player: Player }) {
  const position = player.position.value;
  const isPlaying = player.isPlaying.value;
  const isOver = position >= player.length;
  // A slider ends at its last whole step.
  const end = Math.ceil(player.length / STEP) * STEP;
  // A link to the moment that the reader has chosen.
  const link = () => showInAddress(player.position.value >= player.length ? null : player.event);
  const toggle = () => {
    if (!isPlaying) return player.play();
    player.rest();
    link();
  };
  return (
    <div class="controls" role="group" aria-label={texts.replay.controls}>
      <button class="main" onClick={toggle} disabled={player.length === 0}>
        <span aria-hidden="true">{isPlaying ? "❚❚" : "▶"}</span> {isPlaying ? texts.replay.rest : texts.replay.play}
      </button>
      <input
        type="range"
        aria-label={texts.replay.moment}
        aria-valuetext={`${clock(position)} / ${clock(player.length)}`}
        min={0}
        max={end}
        step={STEP}
        value={isOver ? end : position}
        onInput={(e) => player.seek(Math.min(e.currentTarget.valueAsNumber, player.length))}
        onPointerUp={link}
        onKeyUp={link}
      />
      <span class="clock" aria-hidden="true">{`${clock(position)} / ${clock(player.length)}`}</span>
      <span class="speeds" role="group" aria-label={texts.replay.speed}>
        {SPEEDS.map((speed) => (
          <button key={speed} aria-pressed={player.speed.value === speed} onClick={() => (player.speed.value = speed)}>
            {`${speed}×`}
          </button>
        ))}
      </span>
      <button onClick={() => (player.toEnd(), link())} disabled={isOver}>{texts.replay.toEnd}</button>
    </div>
  );
}

function clock(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
