import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DownloadError } from "../../src/errors.ts";
import type { CatalogModel, HubSource } from "../../src/models/model.ts";
import type { ModelProgress } from "../../src/models/progress.ts";
import { partialName } from "../../src/models/sources/hub.ts";
import { bytesOf, COMMIT, HubServer, sha256 } from "./hub-server.ts";
import { Room, testModel } from "./room.ts";

const WEIGHTS = bytesOf(300_000);
const VOCABULARY = Buffer.from("hello 0\nworld 1\n");
const REPOSITORY = "owner/model";

const MODEL: CatalogModel = testModel(
  "toy",
  [
    [
      {
        kind: "hf",
        repository: REPOSITORY,
        revision: "main",
        files: [
          { from: "onnx/weights.onnx", to: "weights.onnx" },
          { from: "vocabulary.txt", to: "vocabulary.txt" },
          { from: "data/", to: "data/" },
        ],
      },
    ],
  ],
  { model: "weights.onnx", tokens: "vocabulary.txt", dataDir: "data" },
);

let hub: HubServer;
let room: Room;

beforeEach(async () => {
  room = new Room();
  hub = await HubServer.start(REPOSITORY, {
    "onnx/weights.onnx": WEIGHTS,
    "vocabulary.txt": VOCABULARY,
    "data/a.txt": Buffer.from("a"),
    "data/deep/b.bin": bytesOf(2000, 7),
    "README.md": Buffer.from("not wanted"),
  });
});

afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  room[Symbol.dispose]();
});

const ensure = (options: { hfToken?: string } = {}, onProgress?: (progress: ModelProgress) => void) =>
  room.store([MODEL], { hfEndpoint: hub.endpoint, ...options }).ensure("toy", { onProgress });

/** Breaks the connection once that many bytes have arrived. */
const dropAt = (bytes: number) => (progress: ModelProgress) => {
  if (progress.kind === "bytes" && progress.doneBytes === bytes) hub.dropBodies();
};

async function failure(run: Promise<unknown>): Promise<DownloadError> {
  const error = await run.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DownloadError);
  return error as DownloadError;
}

const expectWhole = async (): Promise<void> => {
  const files = room.store([MODEL], { offline: true }).find("toy")!;
  expect(sha256(readFileSync(files.file("model")))).toBe(sha256(WEIGHTS));
  expect(readFileSync(files.file("tokens"))).toEqual(VOCABULARY);
  expect(readFileSync(join(files.file("dataDir"), "deep/b.bin"))).toEqual(bytesOf(2000, 7));
  expect(room.leftovers()).toEqual([]);
};

describe("a whole pull", () => {
  test("brings the named files and folders, and nothing else", async () => {
    await ensure();
    await expectWhole();
    expect(hub.bodies("README.md")).toEqual([]);
    expect(hub.bodies("onnx/weights.onnx")).toHaveLength(1);
  });

  test("makes no request when the model is there", async () => {
    await ensure();
    hub.seen.length = 0;
    await ensure();
    expect(hub.seen).toEqual([]);
  });

  test("shows the token to the hub and never to the host that it sends large files from", async () => {
    hub.token = "secret";
    await ensure({ hfToken: "secret" });
    await expectWhole();
    const seenBy = (host: string) => new Set(hub.seen.filter((r) => r.host === host).map((r) => r.authorization));
    expect(seenBy("hub")).toEqual(new Set(["Bearer secret"]));
    expect(seenBy("lfs")).toEqual(new Set([null]));
  });

  test("reports bytes that only grow and end at the size", async () => {
    const seen: ModelProgress[] = [];
    await ensure({}, (progress) => seen.push(progress));
    const ofWeights = seen.filter((p) => "item" in p && p.item === "onnx/weights.onnx");
    expect(ofWeights[0]).toMatchObject({ kind: "started", doneBytes: 0, totalBytes: WEIGHTS.length, model: "toy" });
    expect(ofWeights.at(-1)).toMatchObject({ kind: "finished", doneBytes: WEIGHTS.length });
    const counts = ofWeights.flatMap((p) => (p.kind === "bytes" ? [p.doneBytes] : []));
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
  });

  test("a file that was truncated in the cache is missed and fetched again", async () => {
    const files = await ensure();
    writeFileSync(files.file("model"), WEIGHTS.subarray(0, 10));
    expect(room.store([MODEL]).find("toy")).toBeNull();
    await ensure();
    await expectWhole();
  });
});

describe("an interrupted body", () => {
  test("goes on from where it ended, under the same validator", async () => {
    hub.fail("onnx/weights.onnx", { kind: "hang", afterBytes: 100_000 });
    await ensure({}, dropAt(100_000));
    await expectWhole();
    const [first, second] = hub.bodies("onnx/weights.onnx");
    expect(first).toMatchObject({ range: null, ifRange: null });
    expect(second?.range).toBe("bytes=100000-");
    expect(second?.ifRange).toBe(`"${sha256(WEIGHTS).slice(0, 32)}"`);
  });

  test("any sequence of cuts gives the same file", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 299_999 }), { maxLength: 4 }), async (cuts) => {
        hub.faults.clear();
        hub.fail("onnx/weights.onnx", ...cuts.map((afterBytes) => ({ kind: "cut", afterBytes }) as const));
        await room.store([MODEL]).remove("toy");
        await ensure();
        await expectWhole();
      }),
      { numRuns: 15, seed: 20_261_130 },
    );
  });

  test("starts over when the server cannot go on", async () => {
    hub.fail("onnx/weights.onnx", { kind: "hang", afterBytes: 100_000 }, { kind: "ignore-range" });
    await ensure({}, dropAt(100_000));
    await expectWhole();
  });

  test("a server that falls silent is left and asked again", async () => {
    hub.fail("onnx/weights.onnx", { kind: "hang", afterBytes: 100_000 });
    const idle: (() => void)[] = [];
    const clock = {
      nowMs: () => room.clock.nowMs(),
      unixSeconds: () => room.clock.unixSeconds(),
      schedule(delayMs: number, run: () => void) {
        if (delayMs !== 30_000) return room.clock.schedule(delayMs, run);
        idle.push(run);
        return () => idle.splice(idle.indexOf(run), 1);
      },
    };
    const store = room.store([MODEL], { hfEndpoint: hub.endpoint, clock });
    let fired = false;
    await store.ensure("toy", {
      onProgress: (progress) => {
        if (progress.kind !== "bytes" || progress.doneBytes < 100_000 || fired) return;
        fired = true;
        setImmediate(() => idle.at(-1)?.());
      },
    });
    expect(fired).toBe(true);
    await expectWhole();
    expect(hub.bodies("onnx/weights.onnx")[1]?.range).toBe("bytes=100000-");
  });

  test("a file that always ends early is download_truncated, and the next pull goes on from it", async () => {
    const cut = { kind: "cut", afterBytes: 0 } as const;
    hub.fail("onnx/weights.onnx", { kind: "hang", afterBytes: 50_000 }, cut, cut, cut, cut, cut);
    const error = await failure(ensure({}, dropAt(50_000)));
    expect(error.code).toBe("download_truncated");
    expect(room.store([MODEL]).find("toy")).toBeNull();
    expect(room.leftovers()).toEqual([]);
    hub.faults.clear();
    await ensure();
    await expectWhole();
    expect(hub.bodies("onnx/weights.onnx").at(-1)?.range).toBe("bytes=50000-");
  });

  test("cancelling rejects with the reason, publishes nothing and keeps what came", async () => {
    hub.fail("onnx/weights.onnx", { kind: "hang", afterBytes: 100_000 });
    const abort = new AbortController();
    const reason = new Error("the user pressed Ctrl-C");
    const run = room.store([MODEL], { hfEndpoint: hub.endpoint }).ensure("toy", {
      signal: abort.signal,
      onProgress: (progress) => {
        if (progress.kind === "bytes" && progress.doneBytes === 100_000) abort.abort(reason);
      },
    });
    await expect(run).rejects.toBe(reason);
    expect(room.leftovers()).toEqual([]);
    await ensure();
    await expectWhole();
    expect(hub.bodies("onnx/weights.onnx")[1]?.range).toBe("bytes=100000-");
  });
});

describe("refusals", () => {
  test("429 is waited for as long as the server asks", async () => {
    hub.fail("onnx/weights.onnx", { kind: "status", status: 429, retryAfter: "7" });
    hub.fail("api", { kind: "status", status: 429, retryAfter: "3" });
    await ensure();
    await expectWhole();
    expect(room.clock.waitsMs).toEqual([3000, 7000]);
  });

  test("429 for an hour is an error that says so", async () => {
    hub.fail("onnx/weights.onnx", { kind: "status", status: 429, retryAfter: "3600" });
    const error = await failure(ensure());
    expect(error.code).toBe("download_rate_limited");
    expect(error.message).toContain("come back in 3600 s");
    expect(room.leftovers()).toEqual([]);
  });

  test("503 passes by itself", async () => {
    const fault = { kind: "status", status: 503 } as const;
    hub.fail("onnx/weights.onnx", fault, fault);
    hub.fail("api", fault);
    await ensure();
    await expectWhole();
  });

  test("401 without a token tells to set HF_TOKEN; with one, that it has no access; neither shows it", async () => {
    hub.token = "right";
    const without = await failure(ensure());
    expect(without.code).toBe("download_refused");
    expect(without.message).toContain("set HF_TOKEN");
    const withWrong = await failure(ensure({ hfToken: "wrong-token" }));
    expect(withWrong.message).toContain("has no access");
    expect(withWrong.message).not.toContain("wrong-token");
    hub.token = null;
    hub.fail("onnx/weights.onnx", { kind: "status", status: 403 });
    expect((await failure(ensure())).code).toBe("download_refused");
    expect(hub.bodies("onnx/weights.onnx")).toHaveLength(1);
  });

  test("a repository or file that is not there is download_not_found, without another try", async () => {
    hub.files.delete("vocabulary.txt");
    const error = await failure(ensure());
    expect(error.code).toBe("download_not_found");
    expect(error.message).toContain("vocabulary.txt");
    hub.commit = "f".repeat(40);
    hub.fail("api", { kind: "status", status: 404 });
    expect((await failure(ensure())).code).toBe("download_not_found");
    expect(room.clock.waitsMs).toEqual([]);
    expect(room.leftovers()).toEqual([]);
  });

  test("a hub that cannot be reached is download_unreachable", async () => {
    const error = await failure(room.store([MODEL]).ensure("toy"));
    expect(error.code).toBe("download_unreachable");
    expect(error.message).toContain("check the network");
  });

  test("offline is download_offline, and says how to get the model", async () => {
    const error = await failure(room.store([MODEL], { offline: true, hfEndpoint: hub.endpoint }).ensure("toy"));
    expect(error.code).toBe("download_offline");
    expect(error.message).toContain("antiphon models pull toy");
    expect(hub.seen).toEqual([]);
    expect(room.files()).toEqual([]);
  });
});

describe("what is not the file", () => {
  test.each(["onnx/weights.onnx", "vocabulary.txt"])("%s with other bytes is download_checksum", async (path) => {
    hub.fail(path, { kind: "corrupt" });
    const error = await failure(ensure());
    expect(error.code).toBe("download_checksum");
    expect(error.message).toContain(path);
    expect(room.leftovers()).toEqual([]);
    await ensure();
    await expectWhole();
  });

  test("other bytes in an earlier, interrupted pull are thrown away once, and the file fetched again", async () => {
    const partial = partialName(`${REPOSITORY}/onnx/weights.onnx`, sha256(WEIGHTS));
    const folder = join(room.cacheDir, "models/toy/partial");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, partial), bytesOf(5000, 99));
    writeFileSync(join(folder, `${partial}.etag`), `"${sha256(WEIGHTS).slice(0, 32)}"`);
    await ensure();
    await expectWhole();
    expect(hub.bodies("onnx/weights.onnx").map(({ range }) => range)).toEqual(["bytes=5000-", null]);
  });

  test("a partial file that is too long is dropped before anything is asked for", async () => {
    const folder = join(room.cacheDir, "models/toy/partial");
    mkdirSync(folder, { recursive: true });
    const partial = partialName(`${REPOSITORY}/onnx/weights.onnx`, sha256(WEIGHTS));
    writeFileSync(join(folder, partial), Buffer.concat([WEIGHTS, Buffer.from("metadata")]));
    await ensure();
    await expectWhole();
    expect(hub.bodies("onnx/weights.onnx").map(({ range }) => range)).toEqual([null]);
  });

  test("a digest in the catalog goes before the one that the hub gives", async () => {
    const files = [{ from: "vocabulary.txt", to: "vocabulary.txt", sha256: "0".repeat(64) }];
    const source = { kind: "hf", repository: REPOSITORY, revision: "main", files } as const;
    const store = room.store([testModel("pinned", [[source]], {})], { hfEndpoint: hub.endpoint });
    expect((await failure(store.ensure("pinned"))).code).toBe("download_checksum");
  });
});

describe("a full disk", () => {
  // /dev/full is a file on which every write meets a full disk.
  test.runIf(process.platform === "linux")("while writing is download_disk_full, tried once", async () => {
    const partial = partialName(`${REPOSITORY}/onnx/weights.onnx`, sha256(WEIGHTS));
    const folder = join(room.cacheDir, "models/toy/partial");
    mkdirSync(folder, { recursive: true });
    symlinkSync("/dev/full", join(folder, partial));
    const error = await failure(ensure());
    expect(error.code).toBe("download_disk_full");
    expect(error.message).toContain(room.cacheDir);
    expect(hub.bodies("onnx/weights.onnx")).toHaveLength(1);
    expect(room.leftovers()).toEqual([]);
    await ensure();
    await expectWhole();
  });

  test("is told before the first byte when the size is known", async () => {
    const store = room.store([{ ...MODEL, bytes: 2 ** 60 }], { hfEndpoint: hub.endpoint });
    expect((await failure(store.ensure("toy"))).code).toBe("download_disk_full");
    expect(hub.seen).toEqual([]);
  });
});

test("a file that came whole is not fetched again when a later one fails", async () => {
  hub.fail("vocabulary.txt", { kind: "status", status: 403 });
  await failure(ensure());
  expect(room.leftovers()).toEqual([]);
  await ensure();
  await expectWhole();
  expect(hub.bodies("onnx/weights.onnx")).toHaveLength(1);
  expect(room.files().filter((file) => file.includes("/partial/"))).toEqual([]);
});

test("two callers at once share one download", async () => {
  const waits: string[] = [];
  const note = (progress: ModelProgress): void => {
    if (progress.kind === "waiting") waits.push(progress.owner);
  };
  const [one, other] = await Promise.all([ensure({}, note), ensure({}, note)]);
  expect(one.directory).toBe(other.directory);
  expect(hub.bodies("onnx/weights.onnx")).toHaveLength(1);
  expect(waits).toEqual([expect.stringContaining(`pid ${process.pid}`)]);
  await expectWhole();
});

test("a revision that is a commit is asked for as it is", async () => {
  const files = [{ from: "vocabulary.txt", to: "v" }];
  const source = { kind: "hf", repository: REPOSITORY, revision: COMMIT, files } as const;
  const store = room.store([testModel("fixed", [[source]], { v: "v" })], { hfEndpoint: hub.endpoint });
  const model = await store.ensure("fixed");
  expect(readFileSync(model.file("v"))).toEqual(VOCABULARY);
  expect(() => model.file("nothing")).toThrow(/has no file for "nothing"; it has v/);
});

test("where the catalog knows every size and digest, the hub is asked for the files alone", async () => {
  const pin = { bytes: WEIGHTS.length, sha256: sha256(WEIGHTS) };
  const source = {
    kind: "hf",
    repository: REPOSITORY,
    revision: COMMIT,
    files: [{ from: "onnx/weights.onnx", to: "w", ...pin }],
  };
  const store = room.store([testModel("known", [[source as HubSource]], { w: "w" })], { hfEndpoint: hub.endpoint });
  expect(readFileSync((await store.ensure("known")).file("w"))).toEqual(WEIGHTS);
  expect(hub.seen.map(({ host, path }) => [host, path])).toEqual([
    ["hub", "onnx/weights.onnx"],
    ["lfs", "onnx/weights.onnx"],
  ]);
});

describe("settings that cannot work", () => {
  test.each([
    [{ hfEndpoint: "huggingface.co" }, "write it like https://HOST"],
    [{ hfEndpoint: "https://me:s3cret@mirror" }, "HF_TOKEN instead"],
    [{ hfToken: "s3cret\nmore" }, "copy it again"],
  ])("are told at once, and no secret is shown", (options, advice) => {
    const make = (): unknown => room.store([MODEL], options);
    expect(make).toThrow(advice);
    expect(make).not.toThrow("s3cret");
  });

  test("a token that ends in a line break, as files do, is the token", async () => {
    hub.token = "secret";
    await ensure({ hfToken: "secret\n" });
    await expectWhole();
  });

  test("a cache that cannot be written is told with its path", async () => {
    const file = join(room.directory, "a-file");
    writeFileSync(file, "");
    const store = room.store([MODEL], { hfEndpoint: hub.endpoint, cacheDir: join(file, "cache") });
    const error = await failure(store.ensure("toy"));
    expect(error.code).toBe("download_failed");
    expect(error.message).toContain(file);
  });

  test("a login page in place of the hub is download_failed, asked once", async () => {
    hub.loginPage = true;
    const error = await failure(ensure());
    expect(error.code).toBe("download_failed");
    expect(error.message).toContain("login page");
    expect(hub.seen).toHaveLength(1);
  });
});
