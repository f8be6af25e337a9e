import { findingOf } from "../../../findings";
import type { Call } from "../../../parts";
import { FindingView } from "../FindingView";
import { PlainCall } from "./PlainCall";

/** A finding that was noted; with its arguments and the reason if it was refused. */
export function FindingCall({ call }: { call: Call }) {
  const finding = findingOf(call);
  return finding ? <FindingView finding={finding} /> : <PlainCall call={call} />;
}
