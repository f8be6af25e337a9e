import { useRef } from "preact/hooks";
import { reading, stopReading } from "../address";
import { RunView } from "../components/chat/RunView";
import { useFollowing } from "../components/chat/autoscroll";
import { ReportView } from "../components/report/ReportView";
import { texts } from "../texts";
import { Controls } from "./Controls";
import type { Player } from "./player";
import type { Shared } from "./shared";

/**
 * A shared run at its end or at the position of the replay, with the controls. One that was not completed is opened at
 * its newest step, with the work unfolded.
 */
export function Replay({ shared, player }: { shared: Shared; player: Player }) {
  const place = useRef<HTMLElement>(null);
  const isPlaying = player.isPlaying.value;
  void player.position.value;
  const isAtStep = shared.status !== "completed" || player.wasSought;
  const isWatched = useRef(false);
  isWatched.current ||= isPlaying || isAtStep;
  // How often the reader wanted to see the newest step.
  const begun = useRef(isAtStep ? 1 : 0);
  const wasPlaying = useRef(false);
  if (isPlaying && !wasPlaying.current) begun.current += 1;
  wasPlaying.current = isPlaying;
  const note = useFollowing(place, begun.current);
  const { run } = player;
  return (
    <div class="replay">
      <header>
        <span class="brand">maniple</span>
        <h1>{texts.replay.title}</h1>
        {shared.createdAt > 0 && <time>{dateOf(shared.createdAt)}</time>}
      </header>
      <main class="conversation" ref={place} onScroll={note} tabIndex={0} aria-label={texts.replay.title}>
        <div class="column">
          <RunView run={run} version={run.version} isWatched={isWatched.current} />
          <Remarks shared={shared} player={player} />
        </div>
      </main>
      <Controls player={player} />
      {reading.value === run.runId && run.answer && (
        <ReportView runId={run.runId} title={run.plan?.title || run.question} text={run.answer.content} isWritten={run.isComplete} isFinal={run.isOver} onClose={stopReading} />
      )}
    </div>
  );
}

function Remarks({ shared, player }: { shared: Shared; player: Player }) {
  const { events, pictures } = shared.leftOut;
  const { artifacts, problems } = player.run;
  const unreadable = shared.leftOut.unreadable + player.unreadable.size;
  return (
    <>
      {shared.error && problems.length === 0 && <p class="notice bad">{shared.error}</p>}
      {["queued", "running", "interrupted"].includes(shared.status) && <p class="notice">{texts.replay.underWay}</p>}
      {artifacts.length > 0 && <p class="notice">{texts.replay.files}</p>}
      {pictures > 0 && <p class="notice">{`${texts.replay.pictures} ${pictures}`}</p>}
      {unreadable > 0 && <p class="notice">{`${texts.replay.unreadable} ${unreadable}`}</p>}
      {events > 0 && <p class="notice">{`${texts.replay.events} ${events}`}</p>}
    </>
  );
}

function dateOf(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
