import { useEffect, useState } from "preact/hooks";
import { useService } from "../service";

/** A picture of a run. It is fetched, because it needs the API key. */
export function Picture({ url, alt }: { url: string; alt: string }) {
  const { ask } = useService();
  const [shown, setShown] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    let made = "";
    ask(url, { signal: leaving.signal })
      .then((response) => response.blob())
      .then((blob) => setShown((made = URL.createObjectURL(blob))))
      // Without the picture, its alternative text stays.
      .catch(() => undefined);
    return () => {
      leaving.abort();
      URL.revokeObjectURL(made);
    };
  }, [ask, url]);
  return shown ? <img src={shown} alt={alt} /> : <span>{alt}</span>;
}
