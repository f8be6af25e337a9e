import { describe, expect, it } from "vitest";
import { filesOf } from "../src/uploaded";
import { checkFiles, sizeOf } from "../src/uploads";

const limits = { files: 3, upload_bytes: 10_000, workspace_bytes: 6_000 };
const file = (name: string, size: number) => new File([new Uint8Array(size)], name);

describe("chosen files", () => {
  it("are accepted one by one, and each refusal names the file, its size and the setting", () => {
    const { accepted, refusals } = checkFiles([file("a", 5_000)], [file("upload", 11_000), file("b", 10), file("workspace", 6_001), file("sum", 5_000)], limits);
    expect(accepted.map((one) => one.name)).toEqual(["b"]);
    for (const [at, words] of [["upload", "11.0 KB", "10.0 KB", "server.max_upload_bytes"], ["workspace", "6.0 KB", "sandbox.disk_mb"], ["sum", "5.0 KB", "10.0 KB", "server.max_upload_bytes"]].entries())
      for (const one of words) expect(refusals[at]).toContain(one);
    expect(refusals.length).toBe(3);
  });

  it("are limited in number, and not at all where the service tells no limits", () => {
    const many = [file("a", 1), file("b", 1), file("c", 1), file("d", 1)];
    expect(checkFiles([], many, limits).accepted.length).toBe(3);
    expect(checkFiles([], many, limits).refusals[0]).toContain("d");
    expect(checkFiles([], [...many, file("e", 11_000)], null)).toEqual({ accepted: expect.objectContaining({ length: 5 }), refusals: [] });
  });

  it("have sizes in the unit of their magnitude", () => {
    expect([0, 999, 1_000, 999_949, 999_950, 25_000_000, 999_999_999, 5_000_000_000_000].map(sizeOf)).toEqual(["0 B", "999 B", "1.0 KB", "999.9 KB", "1.0 MB", "25.0 MB", "1.0 GB", "5000.0 GB"]);
  });
});

describe("the files of a question", () => {
  const came = (path: string, uploaded_at: number | null) => ({ path, size: 1, uploaded: uploaded_at !== null, uploaded_at, url: `/${path}` });
  const files = [came("first", 10), came("second", 20), came("third", 30), came("made", null)];
  const names = (since: number | null, at: number | null) => filesOf(files, since, at).map((one) => one.path);

  it("are those that came since the question before", () => {
    expect(names(0, 10)).toEqual(["first"]);
    expect(names(10.5, 30.2)).toEqual(["second", "third"]);
    expect(names(30.2, 40)).toEqual([]);
  });

  it("are not guessed where a time is unknown", () => {
    expect([names(null, 40), names(0, null)]).toEqual([[], []]);
  });
});
