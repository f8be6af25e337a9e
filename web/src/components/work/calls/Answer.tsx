import { outcomeOf, reasonOf } from "../../../results";
import type { Call } from "../../../parts";
import { texts } from "../../../texts";
import { Text } from "../Text";

/** The unchanged result of a tool, without an error that is already shown above. */
export function Answer({ call }: { call: Call }) {
  if (call.result === null || (outcomeOf(call) === "failed" && reasonOf(call) === call.result)) return null;
  return <Text name={texts.result} text={call.result} />;
}
