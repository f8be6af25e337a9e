import { useEffect, useState } from "preact/hooks";
import { read } from "../../api";
import type { RunModel } from "../../run";
import { listed, texts } from "../../texts";

/** What a run was asked with, as in `GET /api/runs/{run_id}`. */
export interface Asked {
  model: string;
  effort: string;
  budget: Record<string, number | null>;
  deep_thinking_mode: boolean;
  search_before_planning: boolean;
  auto_accepted_plan: boolean;
  team_members: string[];
  /** The agent that answers alone; "" for the team. */
  agent: string;
  depth: string;
  locale: string;
  report_style: string;
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

/** What a run was asked with, apart from what was left to the service, in words. */
export function describe(asked: Asked): string[] {
  const { model, effort, depth, report_style: style, locale } = asked;
  const team = asked.agent || listed(asked.team_members);
  const said = [
    asked.deep_thinking_mode && texts.deep,
    asked.search_before_planning && texts.searchFirst,
    !asked.auto_accepted_plan && texts.review,
    depth && `${texts.depth} ${wordOf(texts.depths, depth)}`,
    style && `${texts.style} ${wordOf(texts.styles, style)}`,
    model && `${texts.model} ${model}`,
    effort && `${texts.effort} ${wordOf(texts.efforts, effort)}`,
    team && `${texts.team} ${team}`,
    locale && `${texts.language} ${locale}`,
  ];
  return [...said.filter((one) => typeof one === "string"), ...describeLimits(asked.budget)].filter(Boolean);
}

function describeLimits(budget: Asked["budget"]): string[] {
  const names: Record<string, string> = { ...texts.limitNames, ...texts.callLimitNames };
  const { seconds, ...others } = budget;
  return Object.entries({ minutes: seconds ? seconds / SECONDS_PER_MINUTE : null, ...others })
    .filter(([name, most]) => names[name] && most)
    .map(([name, most]) => texts.atMost(amount(most!), names[name]!));
}

/** A small number keeps its digits: a cost may be a part of a cent. */
function amount(most: number): string {
  return most.toLocaleString(undefined, most < 1 ? { maximumSignificantDigits: 3 } : {});
}

function wordOf(words: Record<string, string>, name: string): string {
  return Object.hasOwn(words, name) ? words[name]! : name;
}
