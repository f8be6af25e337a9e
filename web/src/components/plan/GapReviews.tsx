import type { GapReview } from "../../events";
import { texts } from "../../texts";

/** What the lead found missing before the report of a deep run, and what was done about it; a block for each round. */
export function GapReviews({ reviews }: { reviews: readonly GapReview[] }) {
  return (
    <>
      {reviews.map((one, at) => (
        <Review key={at} review={one} isNewest={at === reviews.length - 1} />
      ))}
    </>
  );
}

function Review({ review: { questions, steps, refused, notice }, isNewest }: { review: GapReview; isNewest: boolean }) {
  return (
    <details class="gap-review" open={isNewest}>
      <summary>{questions.length > 0 ? texts.reviewed.missing(questions.length) : texts.reviewed.nothing}{steps.length > 0 && texts.reviewed.adds(steps.length)}</summary>
      <ul>
        {questions.map(({ question, why, open }) => (
          <li key={question}>
            <span aria-hidden="true">? </span>{question} <span class="who">{[why, open && texts.reviewed.open].filter(Boolean).join(" · ")}</span>
          </li>
        ))}
        {steps.map((title) => (
          <li key={title}><span aria-hidden="true">+ </span><span class="unseen">{texts.reviewed.added} </span>{title}</li>
        ))}
        {refused.map(({ title, reason }) => (
          <li key={title}><span aria-hidden="true">– </span>{texts.reviewed.refused} {title} <span class="who">{reason}</span></li>
        ))}
      </ul>
      {notice && <p class="who">{notice}</p>}
    </details>
  );
}
