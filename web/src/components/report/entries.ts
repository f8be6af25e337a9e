import { copyText } from "../../clipboard";
import { save } from "../../download";
import { texts } from "../../texts";
import type { Service } from "../service";

/** An action in the menu of a report. It throws an error with a message for the user. */
export interface Entry {
  name: string;
  work: () => Promise<void>;
  /** The message after success; none if the result is visible. */
  done?: string;
}

const forms = () => [
  { form: "markdown", name: "Markdown", type: "text/markdown", ending: "md" },
  { form: "html", name: "HTML", type: "text/html", ending: "html" },
  { form: "pdf", name: "PDF", type: "application/pdf", ending: "pdf" },
  { form: "docx", name: "Word (DOCX)", type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ending: "docx" },
  { form: "pptx", name: texts.slides, type: "application/vnd.openxmlformats-officedocument.presentationml.presentation", ending: "pptx" },
  { form: "zip", name: texts.withFigures, type: "application/zip", ending: "zip" },
] as const;

/** What a reader can do with a report. */
export function entriesOf(service: Service, { runId, text, isWritten }: { runId: string; text: string; isWritten: boolean }): Entry[] {
  return [
    ...(isWritten ? downloads(service, runId) : []),
    { name: texts.copyMarkdown, work: () => copy(text), done: texts.copied },
  ];
}

async function copy(text: string): Promise<void> {
  if (!(await copyText(text))) throw new Error(texts.notCopied);
}

/** The report of a run as a file in each available format. */
function downloads(service: Service, runId: string): Entry[] {
  return forms().map(({ form, name, type, ending }) => {
    const path = `/api/runs/${encodeURIComponent(runId)}/report?form=${form}&download=true`;
    const work = async () => {
      await save(await service.ask(path, { headers: { accept: type } }), `report.${ending}`);
    };
    return { path, name, work, done: texts.downloaded(name) };
  }).filter(({ path }) => service.has(path));
}
