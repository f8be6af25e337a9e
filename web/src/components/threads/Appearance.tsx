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
      {canNotify && <button class="chip" title={texts.notifyHint} aria-pressed={isNotified.value} onClick={() => void toggleNotified()}>{texts.notify}</button>}
    </div>
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
