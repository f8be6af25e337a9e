import type { Ref } from "preact";
import { type CheckedClaims, passageOf, reasonOf, scoreText } from "../../claims";
import type { ClaimView } from "../../events.generated";
import type { Source } from "../../references";
import { texts } from "../../texts";

interface Shown {
  checked: CheckedClaims;
  sources: ReadonlyMap<number, Source>;
  list: Ref<HTMLDetailsElement>;
}

/** The score of a report, which opens the list of its claims with their verdicts. */
export function ClaimList({ checked, sources, list }: Shown) {
  if (checked.claims.length === 0) return null;
  return (
    <details class="also claims" ref={list}>
      <summary>{scoreText(checked) || texts.claims}</summary>
      <ol>
        {checked.claims.map((one, index) => (
          <Claim key={index} claim={one} sources={sources} />
        ))}
      </ol>
      {checked.unlisted > 0 && <p>{texts.unlistedClaims.replace("{}", String(checked.unlisted))}</p>}
    </details>
  );
}

function Claim({ claim, sources }: { claim: ClaimView; sources: ReadonlyMap<number, Source> }) {
  const context = [claim.row, claim.column].filter(Boolean).join(" · ");
  const reason = reasonOf(claim);
  const numbers = new Set([...(claim.passage?.source ? [claim.passage.source] : []), ...claim.citations]);
  return (
    <li class="claim" tabIndex={-1}>
      <strong class={`verdict ${claim.verdict}`}>{texts.verdicts[claim.verdict]}</strong> {context && `${context}: `}
      {claim.text}
      {reason && <div class="who">{reason}</div>}
      {passageOf(claim).map((line) => (
        <div class="who">{line}</div>
      ))}
      {[...numbers].map((number) => (
        <SourceLink key={number} number={number} source={sources.get(number)} />
      ))}
    </li>
  );
}

function SourceLink({ number, source }: { number: number; source: Source | undefined }) {
  if (!source || !/^https?:/i.test(source.url) || !URL.canParse(source.url)) return null;
  return (
    <div class="who">
      [{number}]{" "}
      <a href={source.url} target="_blank" rel="noopener noreferrer">
        {source.title || source.url}
      </a>
    </div>
  );
}
