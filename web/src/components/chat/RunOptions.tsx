import { useEffect, useState } from "preact/hooks";
import { read } from "../../api";
import type { RunModel } from "../../run";
import { texts } from "../../texts";

/** What a run was asked with, as in `GET /api/runs/{run_id}`. */
interface Asked {
  model: string;
  effort: string;
  budget: Record<string, number | null>;
}

const SECONDS_PER_MINUTE = 60;

/** What the run at work was asked with: an answer or a message to it changes none of this. */
export function RunOptions({ run: { runId } }: { run: RunModel }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  useEffect(() => {
    let isOld = false;
    setAsked(null);
    read<{ asked: Asked | null }>(`/api/runs/${encodeURIComponent(runId)}`).then((run) => isOld || setAsked(run.asked), () => undefined);
    return () => void (isOld = true);
  }, [runId]);
  const said = asked ? describe(asked) : [];
  return said.length > 0 ? <p class="fixed-options faint">{`${texts.fixedOptions} ${said.join(" · ")}`}</p> : null;
}

function describe({ model, effort, budget }: Asked): string[] {
  const limits = Object.entries({ ...budget, minutes: budget["seconds"] ? budget["seconds"] / SECONDS_PER_MINUTE : null })
    .map(([name, most]) => [texts.limitNames[name as keyof typeof texts.limitNames], most] as const)
    .filter(([name, most]) => name && most)
    .map(([name, most]) => texts.atMost(most!.toLocaleString(), name!));
  return [model && `${texts.model} ${model}`, effort && `${texts.effort} ${texts.efforts[effort as keyof typeof texts.efforts]}`, ...limits].filter(Boolean);
}
