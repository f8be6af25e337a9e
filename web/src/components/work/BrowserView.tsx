import { useEffect, useRef, useState } from "preact/hooks";
import { describeAction, filled } from "../../actionText";
import type { Recording, Frame } from "../../recording";
import { texts } from "../../texts";
import { BrowserControls } from "./BrowserControls";
import { BrowserStage } from "./BrowserStage";

const FRAME_MS = 1_500;
/** The maximum length of a step's error and goal, in characters. */
const SHOWN_WORDS = 500;

interface Shown {
  recording: Recording;
  /** Whether the browser's member is at work; then the newest step is followed. */
  isLive: boolean;
  version: number;
}

/** The position in a recording. */
interface Playback {
  /** The step that the user selected, counted from the first of the run; null follows the newest. */
  chosen: number | null;
  choose: (step: number | null) => void;
  isPlaying: boolean;
  play: (isPlaying: boolean) => void;
}

function usePlayback(): Playback {
  const [chosen, choose] = useState<number | null>(null);
  const [isPlaying, play] = useState(false);
  return { chosen, choose, isPlaying, play };
}

/** The team's browser, which is unfolded while it works. */
export function BrowserView({ recording, isLive, version }: Shown) {
  const playback = usePlayback();
  const [isOpen, setOpen] = useState(isLive);
  const view = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    // What comes next takes the space, unless the user is viewing a step.
    if (isLive) setOpen(true);
    else if (playback.chosen === null && !view.current?.contains(document.activeElement)) setOpen(false);
  }, [isLive]);
  const { newest, frames, leftOut } = recording;
  return (
    <details ref={view} class={`browser-view ${isLive ? "live" : ""}`} open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {texts.browser} <span class="who">{newest && isLive ? doingIn(newest) : filled(texts.recording.steps, { all: frames.length + leftOut })}</span>
      </summary>
      {isOpen && <Player recording={recording} isLive={isLive} version={version} {...playback} />}
    </details>
  );
}

/** The team's browser, always unfolded. */
export function BrowserPlayer(shown: Shown) {
  return <div class="browser-view"><Player {...shown} {...usePlayback()} /></div>;
}

/** A browser with the current action marked. All steps can be revisited, and played after the run. */
function Player({ recording, isLive, chosen, choose, isPlaying, play }: Shown & Playback) {
  const { frames, leftOut } = recording;
  const last = frames.length - 1;
  const at = chosen === null ? last : Math.min(Math.max(chosen - leftOut, 0), last);
  const frame = frames[at] ?? null;
  const go = (to: number) => {
    const near = Math.min(Math.max(to, 0), last);
    choose(near === last && isLive ? null : near + leftOut);
  };
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
  const step = filled(texts.recording.step, { n: at + 1 + leftOut, all: frames.length + leftOut });
  const doing = frame ? doingIn(frame) : "";
  return (
    <section aria-label={texts.browser} onKeyDown={move}>
      <BrowserStage frame={frame} place={frame ? frame.place : recording.place} newest={isLive && at === last ? recording.picture : null} isActing={isLive && at === last} caption={doing} />
      {frame && <Caption frame={frame} doing={doing} />}
      {frame && (
        <BrowserControls at={at} last={last} step={`${step}: ${doing}`} go={go}>
          <Go isLive={isLive} isFollowing={chosen === null} isPlaying={isPlaying} go={isLive ? () => choose(null) : toggle} />
          <span class="who count">{step}</span>
        </BrowserControls>
      )}
      <p class="unseen" role="status">{chosen !== null && !isPlaying && `${step}: ${doing}`}</p>
    </section>
  );
}

function doingIn({ action, element, state, thought }: Frame): string {
  if (action) return describeAction(action, element);
  return thought && state !== "thinking" ? texts.recording.answers : texts.recording.thinking;
}

function Caption({ frame, doing }: { frame: Frame; doing: string }) {
  const { phase, thought, success, observation, seconds } = frame;
  return (
    <div class="caption">
      {phase && <p class="who">{filled(texts.recording.phase, { phase }, SHOWN_WORDS)}</p>}
      <p class="doing">
        {doing} {seconds > 0 && <span class="who">{seconds.toFixed(1)} s</span>}
      </p>
      {thought && <p class="thought">{thought}</p>}
      {success === false && observation && <p class="reason">{filled(texts.recording.failed, { why: observation }, SHOWN_WORDS)}</p>}
    </div>
  );
}

interface Going {
  isLive: boolean;
  isFollowing: boolean;
  isPlaying: boolean;
  go: () => void;
}

/** Follows live, or plays. It stays one button, so that it keeps the focus. */
function Go({ isLive, isFollowing, isPlaying, go }: Going) {
  const { live, follow, pause, play } = texts.recording;
  const isIdle = isLive && isFollowing;
  return (
    <button class={`go ${isLive && !isFollowing ? "main" : ""}`} aria-disabled={isIdle} onClick={go}>
      {isIdle && <span class="pulse" aria-hidden="true" />}
      {!isLive && <span aria-hidden="true">{isPlaying ? "❚❚" : "▶"}</span>} {isLive ? (isFollowing ? live : follow) : isPlaying ? pause : play}
    </button>
  );
}
