import { startReading } from "../../address";
import { words } from "../../words";

export function ReadButton({ runId }: { runId: string }) {
  return (
    <button class="read-report" onClick={() => startReading(runId)}>
      {words.readReport}
    </button>
  );
}
