import type { Interrupt } from "../../events";
import type { RunModel } from "../../run";
import { useService } from "../service";

interface Waits {
  run: RunModel;
  waiting: Interrupt;
  name: string;
  /** The first words of the answer, which say what it decides. */
  begin?: string;
}

/** Leads to the field below, where an answer in words is written: the only one. */
export function InWords({ run, waiting, name, begin = "" }: Waits) {
  const { acts } = useService();
  return <button type="button" onClick={() => acts?.answerInWords(run, waiting, begin)}>{name}</button>;
}
