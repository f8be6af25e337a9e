import { useEffect, useState } from "preact/hooks";
import { useService } from "./service";

/** The JSON at a path of the service. */
export interface Fetched<Data> {
  /** Null until it is loaded. */
  data: Data | null;
  hasFailed: boolean;
}

/** Load the JSON at `path`, and again when `version` changes; what was loaded before stays meanwhile. */
export function useFetched<Data>(path: string, version: unknown = null): Fetched<Data> {
  const { ask, has } = useService();
  const [fetched, setFetched] = useState<Fetched<Data>>({ data: null, hasFailed: false });
  useEffect(() => {
    if (!has(path)) return;
    const leaving = new AbortController();
    ask(path, { signal: leaving.signal })
      .then((response) => response.json() as Promise<Data>)
      .then(
        (data) => setFetched({ data, hasFailed: false }),
        () => leaving.signal.aborted || setFetched(({ data }) => ({ data, hasFailed: true })),
      );
    return () => leaving.abort();
  }, [path, version]);
  return fetched;
}
