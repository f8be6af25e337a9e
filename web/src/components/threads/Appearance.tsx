import { Refusal } from "../../api";
import { attempt } from "../../conversation";
import { canNotify, isNotified, setNotified } from "../../notifications";
import { LANGUAGES, chooseLanguage, language, texts } from "../../texts";
import { chooseTheme, theme } from "../../theme";
import { ModelButton } from "../models/ModelNote";

/** Theme, language and notifications of the page, which this browser remembers. */
export function Appearance() {
  return (
    <div class="appearance">
      <ModelButton />
      <Choice name={texts.theme} words={texts.themes} value={theme.value || "system"} choose={chooseTheme} />
      <Choice name={texts.language} words={LANGUAGES} value={language.value} choose={chooseLanguage} />
      {canNotify && (
        <button class="chip" aria-label={texts.notify} title={texts.notifyHint} aria-pressed={isNotified.value} onClick={() => void toggleNotified()}>
          <Bell />
        </button>
      )}
    </div>
  );
}

function Bell() {
  return (
    <svg class="bell" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M8 1a1 1 0 0 1 1 1v.3A4.5 4.5 0 0 1 12.5 6.7v2.8L14 12H2l1.5-2.5V6.7A4.5 4.5 0 0 1 7 2.3V2a1 1 0 0 1 1-1ZM6.2 13h3.6a1.8 1.8 0 0 1-3.6 0Z" />
    </svg>
  );
}

function toggleNotified(): Promise<boolean> {
  return attempt(async () => {
    if (!(await setNotified(!isNotified.value))) throw new Refusal(0, "", texts.notifyRefused, null);
  });
}

interface Choices<Word extends string> {
  name: string;
  words: Record<Word, string>;
  value: Word;
  choose: (value: Word) => void;
}

function Choice<Word extends string>({ name, words, value, choose }: Choices<Word>) {
  return (
    <select class="chip" aria-label={name} title={name} value={value} onChange={(e) => choose(e.currentTarget.value as Word)}>
      {Object.entries<string>(words).map(([word, text]) => (
        <option key={word} value={word}>{text}</option>
      ))}
    </select>
  );
}
