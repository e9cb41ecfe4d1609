/** bench/voicechat-sessions.ts in small: sessions that end in every way leave nothing behind. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import type { Server } from "../../src/server/server.ts";
import { FIXTURES } from "../support/voicechat.ts";
import { answerDigest, ENDINGS, endSession } from "../support/voicechat-endings.ts";
import { voiceChatServer } from "../support/voicechat-server.ts";

const question = readWav(readFileSync(`${FIXTURES}/audio/question.wav`)).samples.subarray(0, 6 * 1280);
let server: Server;
let first: string;
beforeAll(async () => {
  server = await voiceChatServer();
  first = await answerDigest(server, question);
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(ENDINGS)(
  "after a session that ends with %s the next is admitted, and hears what the first heard",
  async (ending) => {
    for (let seed = 0; seed < 3; seed++) await endSession(server, ending, seed);
    expect(await answerDigest(server, question)).toBe(first);
  },
);

test("a killed model fails its session and no other: the next waits for the new process and hears the same", async () => {
  await endSession(server, "kill", 1);
  expect(await answerDigest(server, question)).toBe(first);
});
