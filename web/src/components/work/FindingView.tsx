import type { Finding } from "../../findings";
import { texts } from "../../texts";

/** A finding: the statement, its source's number, and the words of the source. */
export function FindingView({ finding: { statement, quote, source } }: { finding: Finding }) {
  return (
    <div class="finding">
      <p>
        {statement} {source !== null && <span class="cite">[{source}]</span>}
      </p>
      {quote && <blockquote>{quote}</blockquote>}
    </div>
  );
}

/** The findings of a step. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings" aria-label={texts.findings(findings.length)}>
      {findings.map((finding, at) => (
        <li key={at}><FindingView finding={finding} /></li>
      ))}
    </ul>
  );
}
