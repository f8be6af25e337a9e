import { useEffect, useRef, useState } from "preact/hooks";

/** The pasted files; none if the clipboard also has text, as from a spreadsheet. Pictures get unique names. */
export function pasted(event: ClipboardEvent): File[] {
  const data = event.clipboardData;
  if (!data || data.types.includes("text/plain")) return [];
  const at = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  return [...data.files].map((file) =>
    file.name.startsWith("image.") ? new File([file], file.name.replace("image", `pasted ${at}`), { type: file.type }) : file,
  );
}

/** Accept files dropped anywhere on the page; returns whether files are dragged over it. */
export function useDropped(onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    const leaving = new AbortController();
    const on = (name: "dragover" | "dragleave" | "drop", react: (event: DragEvent) => void) =>
      addEventListener(name, (event) => event.dataTransfer?.types.includes("Files") && react(event), leaving);
    // Otherwise the browser would open the file instead of the page.
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
