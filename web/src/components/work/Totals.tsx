import { useEffect, useRef, useState } from "preact/hooks";
import { lasted } from "../../clock";
import type { RunModel } from "../../run";
import { texts } from "../../texts";
import { useService } from "../service";

/** The interval for requesting the cost of a run. */
const AGAIN_AFTER_MS = 3_000;

/** The usage of a member; `cost` is null if a price is unknown. */
interface Share {
  agent_name: string;
  input_tokens: number;
  output_tokens: number;
  seconds: number;
  cost: number | null;
}

interface Props {
  run: RunModel;
  version: number;
  /** The members that have turns. */
  members: readonly string[];
  chosen: string | null;
  onChoice: (member: string | null) => void;
}

/** The usage of the run, in total and by member; selecting a member shows only its work. */
export function Totals({ run, members, chosen, onChoice }: Props) {
  const { clock } = useService();
  const shares = useShares(run);
  const isAtWork = run.isAtWork;
  useEffect(() => (isAtWork ? clock.watch() : undefined), [isAtWork, clock]);
  const seconds = run.worked(isAtWork ? clock.now.value : 0);
  const figures = [
    seconds !== null && lasted(seconds),
    run.tokens > 0 && `${run.tokens.toLocaleString()} ${texts.tokens}`,
    costOf(shares),
    run.calls > 0 && texts.calls(run.calls),
  ];
  return (
    <div class="totals">
      <p class="who">{figures.filter(Boolean).join(" · ")}</p>
      {members.length > 1 && (
        <div class="row" role="group" aria-label={texts.byMember}>
          {members.map((name) => (
            <button key={name} class="chip" aria-pressed={name === chosen} onClick={() => onChoice(name === chosen ? null : name)}>
              {name} <span class="who">{figuresOf(shares.find((one) => one.agent_name === name))}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Request the usage of each member: immediately, periodically during the run, and at its end. */
function useShares(run: RunModel): Share[] {
  const { ask, has } = useService();
  const [shares, setShares] = useState<Share[]>([]);
  const askedAt = useRef(-Infinity);
  const path = `/api/runs/${run.runId}`;
  useEffect(() => {
    if (!has(path)) return;
    const leaving = new AbortController();
    const look = async () => {
      askedAt.current = performance.now();
      const usage = (await (await ask(path, { signal: leaving.signal })).json()) as { by_agent?: Share[] };
      if (!leaving.signal.aborted) setShares(usage.by_agent ?? []);
    };
    const wait = run.isAtWork ? askedAt.current + AGAIN_AFTER_MS - performance.now() : 0;
    // If this fails, the cost is not shown.
    const timer = setTimeout(() => void look().catch(() => undefined), Math.max(0, wait));
    return () => (clearTimeout(timer), leaving.abort());
  }, [path, run.tokens, run.status]);
  return shares;
}

function figuresOf(share: Share | undefined): string {
  if (!share) return "";
  const tokens = (share.input_tokens + share.output_tokens).toLocaleString();
  return `${tokens} ${texts.tokens}${share.cost ? ` · ${money(share.cost)}` : ""}`;
}

/** The total cost; a minimum if some prices are unknown, "" if all are. */
export function costOf(shares: readonly Pick<Share, "cost">[]): string {
  const cost = shares.reduce((sum, one) => sum + (one.cost ?? 0), 0);
  if (cost === 0) return "";
  return [texts.cost, shares.some((one) => one.cost === null) && texts.atLeast, money(cost)].filter(Boolean).join(" ");
}

function money(amount: number): string {
  return amount.toLocaleString(undefined, amount < 1 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}
