import { useState } from "preact/hooks";
import { openId } from "../../conversation";
import { beginDraft, draftOf } from "../../drafts";
import { listed, texts } from "../../texts";
import { ActionButton } from "../ActionButton";
import { useService } from "../service";

/** Questions that may follow an answer, on request. One that is chosen goes into the field, and is not sent. */
export function FollowUps({ runId }: { runId: string }) {
  const { ask } = useService();
  const [questions, setQuestions] = useState<readonly string[]>([]);
  const [effortless, setEffortless] = useState<readonly string[]>([]);
  const [trouble, setTrouble] = useState("");
  const suggest = async () => {
    setTrouble("");
    try {
      const response = await ask(`/api/runs/${encodeURIComponent(runId)}/suggestions`, { method: "POST" });
      const found = (await response.json()) as { questions: string[]; effort_not_used: string[] };
      setQuestions(found.questions);
      setEffortless(found.effort_not_used);
    } catch (error) {
      setTrouble(error instanceof TypeError ? texts.unreachable : (error as Error).message);
    }
  };
  return (
    <>
      <ActionButton act={suggest}>{texts.suggestFollowUps}</ActionButton>
      {trouble && <p class="notice" role="alert">{trouble}</p>}
      {/* A list of its own: the role would take that of the list away. */}
      <div role="status">
        {questions.length > 0 && (
          <ul class="follow-ups" aria-label={texts.followUps}>
            {questions.map((text) => (
              <li key={text}>
                <button dir="auto" onClick={() => choose(text, questions)}>{text}</button>
              </li>
            ))}
          </ul>
        )}
        {effortless.length > 0 && <p class="notice">{texts.effortNotUsed(listed(effortless))}</p>}
      </div>
    </>
  );
}

/** Put a question into the field: in place of another suggestion, else below what is written there. */
function choose(text: string, questions: readonly string[]): void {
  const written = draftOf(openId.value).text.trim();
  beginDraft(openId.value, !written || questions.includes(written) ? text : `${written}\n${text}`);
}
