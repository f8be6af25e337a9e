import type * as diagrams from "../diagrams";
import { words } from "../words";

/** Mermaid is ten times as large as all else in a file, and its frame has no place there: diagrams stay code. */
export const draw: typeof diagrams.draw = () => Promise.reject(new Error(words.diagramElsewhere));
export const kindOf: typeof diagrams.kindOf = () => "";
