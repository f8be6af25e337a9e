import { isConnecting, models } from "../../models";
import { texts } from "../../texts";

/** Which model answers; for the small one what is to be expected of it, and the way to a better one. */
export function ModelNote() {
  if (!models.value) return null;
  const { answering, embedded } = models.value;
  if (!embedded) return <p class="faint">{texts.models(answering)}</p>;
  return (
    <div class="notice model-note">
      <p>{texts.smallModel(answering)}</p>
      <button onClick={() => (isConnecting.value = true)}>{texts.connectModel}</button>
    </div>
  );
}

/** The model that answers, as a button that opens the form for another one. */
export function ModelButton() {
  if (!models.value) return null;
  return (
    <button class="chip" title={texts.connectModel} onClick={() => (isConnecting.value = true)}>
      {texts.models(models.value.answering)}
    </button>
  );
}
