import { useEffect, useRef, useState } from "preact/hooks";

/** Files of what was pasted; none where it is text, too, as from a spreadsheet. Pictures get names of their own. */
export function pasted(event: ClipboardEvent): File[] {
  const data = event.clipboardData;
  if (!data || data.types.includes("text/plain")) return [];
  const at = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  return [...data.files].map((file) =>
    file.name.startsWith("image.") ? new File([file], file.name.replace("image", `pasted ${at}`), { type: file.type }) : file,
  );
}

/** Take files that are dropped anywhere on the page; returns whether some are being held over it. */
export function useDropped(onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    const leaving = new AbortController();
    const on = (name: "dragover" | "dragleave" | "drop", react: (event: DragEvent) => void) =>
      addEventListener(name, (event) => event.dataTransfer?.types.includes("Files") && react(event), leaving);
    // Without this the browser leaves the page for the file.
    on("dragover", (event) => (event.preventDefault(), setOver(true)));
    on("dragleave", (event) => event.relatedTarget === null && setOver(false));
    on("drop", (event) => {
      event.preventDefault();
      setOver(false);
      take.current([...(event.dataTransfer?.files ?? [])]);
    });
    return () => leaving.abort();
  }, []);
  return isOver;
}
