import { openAt } from "../../conversation";
import { type Found, found, piecesOf } from "../../search";
import { searched } from "../../threads";
import { texts } from "../../texts";

/** The questions and answers that have the words of the search, each with the passage. */
export function FoundList({ onChoice }: { onChoice: () => void }) {
  if (found.value.length === 0) return null;
  return (
    <section class="found" aria-label={texts.inTexts}>
      <h2>{texts.inTexts}</h2>
      <ul>
        {found.value.map((one) => (
          <Hit key={one.run_id} hit={one} onChoice={onChoice} />
        ))}
      </ul>
    </section>
  );
}

function Hit({ hit, onChoice }: { hit: Found; onChoice: () => void }) {
  const choose = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onChoice();
    // The list of conversations shows which one is open now.
    searched.value = "";
    void openAt(hit);
  };
  return (
    <li>
      <a href={`#${encodeURIComponent(hit.thread_id)}`} onClick={choose}>
        <span class="name">{hit.question || hit.title || texts.untitled}</span>
        <span class="passage">
          {piecesOf(hit).map(({ text, isMarked }, at) => (isMarked ? <mark key={at}>{text}</mark> : text))}
        </span>
      </a>
    </li>
  );
}
