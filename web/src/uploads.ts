import { read } from "./api";
import { texts } from "./texts";

/** How large files may be, in bytes, as the service tells it in `/healthz`. */
export interface UploadLimits {
  /** The files of one upload. */
  files: number;
  /** One upload, with the frame of each file. */
  upload_bytes: number;
  /** All files of a conversation. */
  workspace_bytes: number;
}

/** What is accepted of chosen files, and a sentence about each other one. */
export interface Checked {
  accepted: File[];
  refusals: string[];
}

/** The name of the field, the boundaries and headers of a file in the body, without its name. */
const FRAME_BYTES = 300;

/** The service's limits; null where it does not tell them, and checks files itself. */
export async function uploadLimits(): Promise<UploadLimits | null> {
  const { limits } = await read<{ limits?: UploadLimits | null }>("/healthz");
  return limits ?? null;
}

/** Choose those of `more` files that can be sent with the `chosen` ones, in their order. */
export function checkFiles(chosen: readonly File[], more: readonly File[], limits: UploadLimits | null): Checked {
  const accepted: File[] = [];
  const refusals: string[] = [];
  for (const file of more) {
    const refusal = limits && refusalOf([...chosen, ...accepted], file, limits);
    if (refusal) refusals.push(refusal);
    else accepted.push(file);
  }
  return { accepted, refusals };
}

function refusalOf(before: readonly File[], file: File, limits: UploadLimits): string {
  const upload = sizeOf(limits.upload_bytes);
  const named = [file.name, sizeOf(file.size)] as const;
  if (sent(file) > limits.upload_bytes) return texts.tooLargeUpload(...named, upload);
  if (file.size > limits.workspace_bytes) return texts.tooLargeWorkspace(...named, sizeOf(limits.workspace_bytes));
  const together = [...before, file].reduce((sum, one) => sum + sent(one), 0);
  if (together > limits.upload_bytes) return texts.tooLargeTogether(...named, sizeOf(together), upload);
  return before.length >= limits.files ? texts.tooManyFiles(file.name, limits.files) : "";
}

/** The bytes of a file in the body of an upload. */
function sent(file: File): number {
  return file.size + FRAME_BYTES + 3 * file.name.length;
}

const UNITS = [
  [1e3, "KB"],
  [1e6, "MB"],
  [1e9, "GB"],
] as const;

export function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [size, name] = UNITS.find(([unit]) => bytes < 999.95 * unit) ?? UNITS[2];
  return `${(bytes / size).toFixed(1)} ${name}`;
}
