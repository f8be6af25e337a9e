import { useRef } from "preact/hooks";
import { reading, stopReading } from "../address";
import { RunView } from "../components/chat/RunView";
import { useFollowing } from "../components/chat/autoscroll";
import { ReportView } from "../components/report/ReportView";
import { texts } from "../texts";
import { Controls } from "./Controls";
import type { Player } from "./player";
import type { Shared } from "./shared";

/** A shared run at its end or at the position of the replay, with the controls. */
export function Replay({ shared, player }: { shared: Shared; player: Player }) {
  const place = useRef<HTMLElement>(null);
  const note = useFollowing(place, player.isPlaying.value);
  const wasPlayed = useRef(false);
  wasPlayed.current ||= player.isPlaying.value;
  void player.position.value;
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
          <RunView run={run} version={run.version} isWatched={wasPlayed.current} />
          <Remarks shared={shared} hasFiles={run.artifacts.length > 0} />
        </div>
      </main>
      <Controls player={player} />
      {reading.value === run.runId && run.answer && (
        <ReportView runId={run.runId} title={run.plan?.title || run.question} text={run.answer.content} isWritten={run.isComplete} isFinal={run.isOver} onClose={stopReading} />
      )}
    </div>
  );
}

function Remarks({ shared, hasFiles }: { shared: Shared; hasFiles: boolean }) {
  const { events, pictures } = shared.leftOut;
  return (
    <>
      {["queued", "running", "interrupted"].includes(shared.status) && <p class="notice">{texts.replay.underWay}</p>}
      {hasFiles && <p class="notice">{texts.replay.files}</p>}
      {pictures > 0 && <p class="notice">{`${texts.replay.pictures} ${pictures}`}</p>}
      {events > 0 && <p class="notice">{`${texts.replay.events} ${events}`}</p>}
    </>
  );
}

function dateOf(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
