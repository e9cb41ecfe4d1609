import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CatalogModel } from "../../src/models/model.ts";
import { bytesOf, sha256 } from "./hub-server.ts";
import { Room, testModel } from "./room.ts";

const WEIGHTS = bytesOf(30_000);

let room: Room;
let server: Server;
/** What the server does, one per request; then it sends the file. */
let answers: ((send: {
  head: (status: number, headers?: Record<string, string>) => void;
  body: (b: Buffer) => void;
}) => void)[];
let requests: (string | undefined)[];

beforeEach(async () => {
  room = new Room();
  answers = [];
  requests = [];
  server = createServer((request, response) => {
    requests.push(request.headers.range);
    const answer = answers.shift();
    if (answer === undefined) return response.end(WEIGHTS);
    answer({ head: (status, headers) => response.writeHead(status, headers), body: (bytes) => response.end(bytes) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  room[Symbol.dispose]();
});

function toy(file: { bytes?: number; sha256?: string } = { sha256: sha256(WEIGHTS) }): CatalogModel {
  const from = `http://127.0.0.1:${(server.address() as AddressInfo).port}/files/weights.onnx?v=1`;
  return testModel("toy", [[{ kind: "https", files: [{ from, to: "w.onnx", ...file }] }]], { model: "w.onnx" });
}

test("a file of unknown size from a server that says nothing of itself", async () => {
  const files = await room.store([toy()]).ensure("toy");
  expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
});

test.each([{ sha256: sha256(WEIGHTS) }, {}])(
  "a file that is larger than it should be is another file",
  async (digest) => {
    answers.push(({ head, body }) => {
      head(200);
      body(Buffer.concat([WEIGHTS, Buffer.from("more")]));
    });
    const store = room.store([toy({ bytes: WEIGHTS.length, ...digest })]);
    await expect(store.ensure("toy")).rejects.toMatchObject({ code: "download_checksum" });
    expect(room.leftovers()).toEqual([]);
    const files = await store.ensure("toy");
    expect(readFileSync(files.file("model"))).toEqual(WEIGHTS);
  },
);

test("Retry-After may be a date", async () => {
  const inFiveSeconds = new Date(Date.now() + 5_900).toUTCString();
  answers.push(({ head, body }) => {
    head(503, { "retry-after": inFiveSeconds });
    body(Buffer.alloc(0));
  });
  await room.store([toy()]).ensure("toy");
  expect(room.clock.waitsMs).toHaveLength(1);
  expect(room.clock.waitsMs[0]).toBeGreaterThan(3_000);
  expect(room.clock.waitsMs[0]).toBeLessThanOrEqual(6_000);
});

test("a server that always fails is download_failed after five tries, each later than the one before", async () => {
  for (let i = 0; i < 9; i++) {
    answers.push(({ head, body }) => {
      head(500);
      body(Buffer.alloc(0));
    });
  }
  await expect(room.store([toy()]).ensure("toy")).rejects.toMatchObject({ code: "download_failed" });
  expect(requests).toHaveLength(5);
  const { waitsMs } = room.clock;
  expect(waitsMs).toEqual([...waitsMs].sort((a, b) => a - b));
  expect(room.leftovers()).toEqual([]);
});
