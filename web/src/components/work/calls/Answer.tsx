import { outcomeOf, reasonOf } from "../../../results";
import type { Call } from "../../../turns";
import { words } from "../../../words";
import { Text } from "../Text";

/** What a tool answered, as it is; what was said above of a call that failed is not said twice. */
export function Answer({ call }: { call: Call }) {
  if (call.result === null || (outcomeOf(call) === "failed" && reasonOf(call) === call.result)) return null;
  return <Text name={words.result} text={call.result} />;
}
