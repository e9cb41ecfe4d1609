import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readWav } from "../src/audio/wav.ts";
import { AppError, VoiceChatModel, VoiceChatStream } from "../src/voicechat.ts";
import { checkpointDirectory, FIXTURES } from "./support/voicechat.ts";

const packageJson = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

test("antiphon/voicechat is this file, built", () => {
  expect(packageJson.exports["./voicechat"]).toEqual({
    types: "./dist/voicechat.d.ts",
    default: "./dist/voicechat.js",
  });
});

test("a program of one's own holds a live session", async () => {
  const model = await VoiceChatModel.load(checkpointDirectory("tiny-f32"), { threads: 1 });
  try {
    const stream = await VoiceChatStream.open(model, { seed: 1, maxStreamingSeconds: 0.4 });
    const { samples } = readWav(readFileSync(`${FIXTURES}/audio/question.wav`));
    const heard = await stream.push(samples.subarray(0, 2000), 16_000);
    const flushed = await stream.flush();
    const kinds = [...heard, ...flushed].map((event) => event.kind);
    expect(kinds.filter((kind) => kind === "audio")).toHaveLength(2);
    expect(kinds.at(-1)).toBe("done");
    await expect(stream.push(samples, 16_000)).rejects.toThrow(AppError);
  } finally {
    await model.close();
  }
});

// The second close rejected: the runtime's sessions were disposed of twice.
test("a model may be closed twice, and fails a stream that goes on", async () => {
  const model = await VoiceChatModel.load(checkpointDirectory("tiny-f32"), { threads: 1 });
  const stream = await VoiceChatStream.open(model);
  await Promise.all([model.close(), model.close()]);
  await model.close();
  await expect(stream.push(new Float32Array(1280), 16_000)).rejects.toMatchObject({ code: "engine_failed" });
});

test("the program of README.md runs as it stands there", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const program = readme.split("```js\n").find((block) => block.includes('from "antiphon/voicechat"')) ?? "";
  const body = program
    .split("```")[0]
    ?.replace(/^import .*$/m, "")
    .replace("CHECKPOINT", checkpointDirectory("tiny-f32"));
  async function* microphone(): AsyncGenerator<Float32Array> {
    yield new Float32Array(2000);
    yield new Float32Array(500);
  }
  const kinds: string[] = [];
  const handle = ({ kind }: { kind: string }): void => void kinds.push(kind);
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  const run = AsyncFunction("VoiceChatModel", "VoiceChatStream", "microphone", "handle", body ?? "");
  await run(VoiceChatModel, VoiceChatStream, microphone(), handle);
  expect(kinds.filter((kind) => kind === "audio")).toHaveLength(2);
  expect(kinds.at(-1)).toBe("done");
  for (const kind of new Set(kinds)) expect(readme).toContain(`\`${kind}\``);
});
