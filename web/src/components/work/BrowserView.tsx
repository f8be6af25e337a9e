import { useEffect, useState } from "preact/hooks";
import { acting, filled } from "../../acting";
import type { Film, Frame } from "../../film";
import { words } from "../../words";
import { BrowserControls } from "./BrowserControls";
import { BrowserStage } from "./BrowserStage";

const FRAME_MS = 1_500;

interface Shown {
  film: Film;
  /** Whether the run goes on: then the newest step is followed, at the side where there is room. */
  isLive: boolean;
  version: number;
}

/** What the team's browser shows, with the action marked; each step can be gone back to, and played when all is over. */
export function BrowserView({ film, isLive }: Shown) {
  // The step that a person went to, counted from the run's first; null follows the newest.
  const [chosen, choose] = useState<number | null>(null);
  const [isOpen, setOpen] = useState(isLive);
  const [isPlaying, play] = useState(false);
  const { frames, leftOut } = film;
  const last = frames.length - 1;
  const at = chosen === null ? last : Math.min(Math.max(chosen - leftOut, 0), last);
  const frame = frames[at] ?? null;
  const go = (to: number) => choose(to >= last && isLive ? null : Math.min(Math.max(to, 0), last) + leftOut);
  useEffect(() => {
    // The report has the room now, unless somebody looks at a step.
    if (!isLive && chosen === null) setOpen(false);
  }, [isLive]);
  useEffect(() => {
    if (!isPlaying) return;
    if (at >= last) return play(false);
    const timer = setTimeout(() => go(at + 1), FRAME_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, at, last]);
  const move = (event: KeyboardEvent) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    go(to);
  };
  const toggle = () => {
    if (!isPlaying && at >= last) choose(leftOut);
    play(!isPlaying);
  };
  const step = filled(words.film.step, { n: at + 1 + leftOut, all: frames.length + leftOut });
  const doing = frame ? doingIn(frame) : "";
  return (
    <details class={`browser-view ${isLive ? "live" : ""}`} open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {words.browser} <span class="who">{film.newest && isLive ? doingIn(film.newest) : filled(words.film.steps, { all: frames.length + leftOut })}</span>
      </summary>
      {isOpen && (
        <section aria-label={words.browser} onKeyDown={move}>
          <BrowserStage frame={frame} place={frame ? frame.place : film.place} isActing={isLive && at === last} words={doing} />
          {frame && <Caption frame={frame} doing={doing} />}
          {frame && (
            <BrowserControls at={at} last={last} step={`${step}: ${doing}`} go={go}>
              {isLive ? <Follow isFollowing={chosen === null} follow={() => choose(null)} /> : <Player isPlaying={isPlaying} toggle={toggle} />}
              <span class="who count">{step}</span>
            </BrowserControls>
          )}
          <p class="unseen" role="status">{chosen !== null && !isPlaying && `${step}: ${doing}`}</p>
        </section>
      )}
    </details>
  );
}

function doingIn({ action, element, state, thought }: Frame): string {
  if (action) return acting(action, element);
  return thought && state !== "thinking" ? words.film.answers : words.film.thinking;
}

function Caption({ frame, doing }: { frame: Frame; doing: string }) {
  const { phase, thought, success, observation, seconds } = frame;
  return (
    <div class="caption">
      {phase && <p class="who">{filled(words.film.phase, { phase })}</p>}
      <p class="doing">
        {doing} {seconds > 0 && <span class="who">{seconds.toFixed(1)} s</span>}
      </p>
      {thought && <p class="thought">{thought}</p>}
      {success === false && observation && <p class="reason">{filled(words.film.failed, { why: observation })}</p>}
    </div>
  );
}

function Follow({ isFollowing, follow }: { isFollowing: boolean; follow: () => void }) {
  if (!isFollowing) return <button class="main" onClick={follow}>{words.film.follow}</button>;
  return (
    <span class="now">
      <span class="pulse" aria-hidden="true" /> {words.film.live}
    </span>
  );
}

function Player({ isPlaying, toggle }: { isPlaying: boolean; toggle: () => void }) {
  return (
    <button onClick={toggle}>
      <span aria-hidden="true">{isPlaying ? "❚❚" : "▶"}</span> {isPlaying ? words.film.pause : words.film.play}
    </button>
  );
}
