import { startReading } from "../../address";
import { texts } from "../../texts";

export function ReadButton({ runId }: { runId: string }) {
  return (
    <button class="read-report" onClick={() => startReading(runId)}>
      {texts.readReport}
    </button>
  );
}
