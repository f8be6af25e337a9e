import { LANGUAGES, chooseLanguage, language, texts } from "../../texts";
import { chooseTheme, theme } from "../../theme";

/** Theme and language of the page, which this browser remembers. */
export function Appearance() {
  return (
    <div class="appearance">
      <Choice name={texts.theme} words={texts.themes} value={theme.value || "system"} choose={chooseTheme} />
      <Choice name={texts.language} words={LANGUAGES} value={language} choose={chooseLanguage} />
    </div>
  );
}

interface Choices {
  name: string;
  words: Record<string, string>;
  value: string;
  choose: (value: string) => void;
}

function Choice({ name, words, value, choose }: Choices) {
  return (
    <select class="chip" aria-label={name} title={name} value={value} onChange={(e) => choose(e.currentTarget.value)}>
      {Object.entries(words).map(([word, text]) => (
        <option key={word} value={word}>{text}</option>
      ))}
    </select>
  );
}
