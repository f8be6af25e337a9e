import { memo } from "preact/compat";
import type { Gap } from "../../events";
import { describeAnswer } from "../../decisions";
import { askedCall, askedOf, keyOf } from "../../purpose";
import type { Exchange, Reply, RunModel } from "../../run";
import { labelled, listed, texts } from "../../texts";
import { FileButtons, Files, MOST_FILES, UserFiles } from "../work/Files";
import { InterruptForm } from "../plan/InterruptForm";
import { askerOf } from "../plan/PendingForms";
import { filesOf, uploaded } from "../../uploaded";
import { FollowUps } from "./FollowUps";
import { Answer } from "./Answer";
import { ReadButton } from "../report/ReadButton";
import { Question, RunQuestion } from "./Question";
import { ActionButton } from "../ActionButton";
import { useService } from "../service";
import { Copy } from "../work/Copy";
import { ProposedCall } from "../work/CallBody";
import { Outage, Progress, WorkedFor } from "../work/Progress";
import { RunWork } from "../work/RunWork";
import { Silence } from "../work/Silence";

interface Shown {
  run: RunModel;
  /** Changes with the run, because the model object stays the same. */
  version: number;
  /** Whether its work is unfolded from the beginning, as in a replay that is played. */
  isWatched?: boolean;
  /** Whether its plan and its work stand beside the conversation. */
  isBeside?: boolean;
  /** When the question before it was asked, in Unix seconds; null if unknown. */
  since?: number | null;
}

export const RunView = memo(function RunView({ run, version, isWatched = false, isBeside = false, since = null }: Shown) {
  const answer = run.answer;
  const gaps = unstatedGaps(run, answer?.content);
  const { acts } = useService();
  return (
    <article class="run" id={`run-${run.runId}`} aria-busy={run.isAtWork}>
      {run.question && <RunQuestion run={run} version={version} />}
      <Attached since={since} at={run.askedAt} />
      {!isBeside && <RunWork run={run} version={version} isWatched={isWatched} />}
      <Talk run={run} version={version} isShown={(after) => after < run.answerSince} />
      {answer?.reasoning && <Thoughts text={answer.reasoning} />}
      {answer?.content && !isAsked(run, answer.content) && (
        <Answer run={run} text={answer.content} isReported={isBeside && run.plan !== null && run.isOver && run.isComplete} />
      )}
      {/* What is written while the answer is there moves none of it. */}
      <Talk run={run} version={version} isShown={(after) => after >= run.answerSince} />
      {answer?.content && run.isOver && (
        <div class="answer-acts">
          <Copy text={answer.content} name={texts.copyAnswer} />
          {acts && run.question && <ActionButton act={() => acts.branch(run, "")} title={texts.regenerateHint}>{texts.regenerate}</ActionButton>}
          {acts && ANSWERED.has(run.status) && <FollowUps runId={run.runId} />}
        </div>
      )}
      {answer?.content && run.plan && run.isComplete && run.status !== "interrupted" && <ReadButton runId={run.runId} />}
      {run.effortless.size > 0 && <p class="notice">{texts.effortNotUsed(listed(run.effortless))}</p>}
      {run.problems.map((one) => (
        <p key={one.code} class="notice bad" role="alert">
          {one.message}
        </p>
      ))}
      {run.status === "budget_exhausted" && run.problems.length === 0 && <p class="notice">{texts.budgetUsed}</p>}
      {gaps.length > 0 && <Gaps gaps={gaps} isCancelled={run.status === "cancelled"} />}
      {/* Where nothing can be answered, as in a replay; else the forms are above the composer. */}
      {!acts && run.forms.map((one) => <InterruptForm key={keyOf(one)} run={run} waiting={one} asker={askerOf(run, one)} />)}
      {run.artifacts.length > 0 && <Files artifacts={run.artifacts} threadId={run.threadId} answer={answer?.content ?? ""} />}
      {run.movesFiles && run.isComplete && run.isOver && <UserFiles threadId={run.threadId} />}
      {/* What comes and goes stands below what is read. */}
      {isBeside && <Progress run={run} version={version} />}
      <Outage run={run} version={version} />
      <Standing run={run} version={version} />
      <Silence run={run} version={version} />
    </article>
  );
});

/** Whether a text is the pending question, which its form shows. */
function isAsked({ waiting, status }: RunModel, text: string): boolean {
  return status === "interrupted" && waiting?.kind === "question" && waiting.payload["question"] === text.trim();
}

/** What the user wrote to the run and what was said to it, of the part above or below the answer. */
function Talk({ run, isShown }: Shown & { isShown: (after: number) => boolean }) {
  return (
    <>
      {run.replies.map((one, at) => isShown(one.after) && <Replied key={at} reply={one} />)}
      {run.exchanges.map((one, at) => {
        const isAsked = isShown(one.after);
        const isReplied = one.repliedAfter !== null && isShown(one.repliedAfter);
        const since = run.exchanges[at - 1]?.at ?? run.askedAt;
        return (isAsked || isReplied) && <Written key={one.id} exchange={one} since={since} run={run} isAsked={isAsked} isReplied={isReplied} />;
      })}
    </>
  );
}

interface Message {
  exchange: Exchange;
  since: number | null;
  run: RunModel;
  /** Whether the message stands here, and whether the reply does. */
  isAsked: boolean;
  isReplied: boolean;
}

const NOTES = ["steered", "steeredWaiting", "repliedBelow"] as const;

/** What became of a message so far. It is as high as the longest note, so that the next one moves nothing below it. */
function Note({ shown }: { shown: (typeof NOTES)[number] }) {
  return (
    <span class="note">
      {NOTES.map((one) => (
        <span key={one} class={one === shown ? "shown" : ""}>{texts[one]}</span>
      ))}
    </span>
  );
}

/** A message of the user to the run with the lead's reply. One that became a run is its question as soon as that stands here. */
function Written({ exchange: { content, reply, at, nextRun }, since, run: { isOver, status }, isAsked, isReplied }: Message) {
  const { acts } = useService();
  const isHere = isAsked && !(isOver && nextRun !== null && acts?.isAskedHere(nextRun));
  const received = status === "interrupted" ? "steeredWaiting" : "steered";
  return (
    <div class="written">
      {isHere && <Question text={content} />}
      {isHere && <Attached since={since} at={at} />}
      <p class="reply" role="status">{isReplied ? reply : <Note shown={reply === null ? received : "repliedBelow"} />}</p>
    </div>
  );
}

/** The files that came with a question. */
function Attached({ since, at }: { since: number | null; at: number | null }) {
  const files = filesOf(uploaded.value, since, at);
  if (files.length === 0) return null;
  return (
    <section class="files attached" aria-label={texts.attached}>
      {files.length > MOST_FILES ? (
        <details>
          <summary>{texts.filesIn("", files.length)}</summary>
          <FileButtons files={files} />
        </details>
      ) : (
        <FileButtons files={files} />
      )}
    </section>
  );
}

/** What the team asked, and the user's answer, with a reply if that asked something in turn. */
function Replied({ reply: { asked, answer, reply } }: { reply: Reply }) {
  return (
    <div class="replied">
      {asked && <p class="reply">{askedOf(asked)}</p>}
      {asked?.kind === "tool_approval" && <ProposedCall {...askedCall(asked)} />}
      <Question text={describeAnswer(answer, asked)} />
      {reply && (
        <p class="reply" role="status">
          {reply}
        </p>
      )}
    </div>
  );
}

/** The gaps that the answer does not name itself, as one that code put together does. */
function unstatedGaps({ gaps }: RunModel, answer = ""): Gap[] {
  const lines = answer.split("\n");
  return gaps.filter(
    ({ step, reason }) =>
      !lines.some((line) => (line.startsWith("MISSING:") && line.includes(step)) || (line.startsWith("**") && line.includes(`(${step}):**`)) || (reason && line.includes(`No report could be written: ${reason}`))),
  );
}

function Gaps({ gaps, isCancelled }: { gaps: Gap[]; isCancelled: boolean }) {
  return (
    <div class="notice">
      <p>{isCancelled ? texts.notDone : texts.gaps}</p>
      <ul>
        {gaps.map(({ step, reason }) => (
          <li key={step}>{reason && !isCancelled ? labelled(step, reason) : step}</li>
        ))}
      </ul>
    </div>
  );
}

function Thoughts({ text }: { text: string }) {
  return (
    <details class="thoughts">
      <summary>{texts.thoughts}</summary>
      <p>{text}</p>
    </details>
  );
}

/** The statuses of runs whose answer is their report. */
const ANSWERED = new Set(["completed", "budget_exhausted"]);
/** The statuses of runs that go on with what they have not done. */
const UNANSWERED = new Set(["failed", "cancelled"]);

function Standing({ run, version }: Shown) {
  const { acts } = useService();
  return (
    <footer class={`standing ${run.status}`}>
      <span role="status" aria-live="off">{texts.status[run.status] ?? run.status}</span>
      {run.isOver && <WorkedFor run={run} version={version} />}
      {run.models.size > 0 && <span>{texts.models(listed(run.models))}</span>}
      {run.tokens > 0 && <span>{`${run.tokens.toLocaleString()} ${texts.tokens}`}</span>}
      {run.calls > 0 && <span>{texts.calls(run.calls)}</span>}
      {acts && run.isOver && <button onClick={() => void acts.share(run)}>{texts.share}</button>}
      {acts && run.isAtWork && !acts.isForemost(run) && <ActionButton act={() => acts.cancel(run)}>{texts.cancelRun}</ActionButton>}
      {acts && run.isOver && (UNANSWERED.has(run.status) || run.gaps.some((gap) => !gap.rejected)) && (
        <ActionButton act={() => acts.retry(run)} title={texts.retryHint}>{texts.retryRun}</ActionButton>
      )}
      {acts && run.isOver && run.status !== "completed" && run.question && (
        <ActionButton act={() => acts.askAgain(run)}>{texts.askAgain}</ActionButton>
      )}
    </footer>
  );
}
