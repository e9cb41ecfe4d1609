import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../../src/audio/wav.ts";
import { VoiceChatModel } from "../../../src/engines/voicechat/model.ts";
import { type StreamOptions, type VoiceChatEvent, VoiceChatStream } from "../../../src/engines/voicechat/stream.ts";
import { RandomGenerator } from "../../../src/util/rng.ts";
import { type GoldenTensor, goldenFloats, goldenIds, largestDifference, readGolden } from "../../support/golden.ts";
import { CHECKPOINTS, checkpointDirectory, FIXTURES } from "../../support/voicechat.ts";

interface StreamJson {
  readonly prompt: string;
  readonly seed: number;
  readonly extra_decoding_seconds: number;
  readonly wav: string;
  readonly events: readonly Record<string, unknown>[];
}

/** An event as the reference's file has it: without the arrays. */
function plain(event: VoiceChatEvent): Record<string, unknown> {
  const common = { kind: event.kind, frame_index: event.frameIndex };
  if ("tokenId" in event) return { ...common, token_id: event.tokenId, delta: event.delta, text: event.text };
  if ("text" in event) return { ...common, delta: event.delta, text: event.text };
  return common;
}

async function run(
  model: VoiceChatModel,
  options: StreamOptions,
  samples: Float32Array,
  chunkSamples: number,
): Promise<VoiceChatEvent[]> {
  const stream = await VoiceChatStream.open(model, options);
  const events: VoiceChatEvent[] = [];
  for (let at = 0; at < samples.length; at += chunkSamples) {
    events.push(...(await stream.push(samples.subarray(at, at + chunkSamples), 16_000)));
  }
  events.push(...(await stream.flush()));
  return events;
}

const audioOf = (events: readonly VoiceChatEvent[]) =>
  events.flatMap((event) => (event.kind === "audio" ? [event] : []));

describe.each(CHECKPOINTS)("the live stream of %s", (name) => {
  const reference = `${FIXTURES}/${name}/reference`;
  const json = JSON.parse(readFileSync(`${reference}/stream.json`, "utf8")) as StreamJson;
  const golden: Record<string, GoldenTensor> = readGolden(`${reference}/stream.safetensors`);
  const recording = readWav(readFileSync(`${FIXTURES}/audio/${json.wav}`)).samples;
  const samples = new Float32Array(recording.length + Math.round(json.extra_decoding_seconds * 16_000));
  samples.set(recording);
  const options: StreamOptions = { systemPrompt: json.prompt, seed: json.seed };
  let model: VoiceChatModel;
  let events: VoiceChatEvent[];
  beforeAll(async () => {
    model = await VoiceChatModel.load(checkpointDirectory(name), { threads: 1 });
    events = await run(model, options, samples, 1280);
  });
  afterAll(() => model.close());

  test("equals the reference: order, ids, deltas, texts, codes and sound", () => {
    expect(events.map(plain)).toEqual(json.events);
    expect(audioOf(events).flatMap((event) => event.audioCodes)).toEqual(goldenIds(golden, "audio_codes"));
    const sound = audioOf(events).flatMap((event) => [...event.samples]);
    expect(largestDifference(Float32Array.from(sound), goldenFloats(golden, "audio"))).toBeLessThan(1e-4);
  });

  test.each([1, 160, 777, 2000, samples.length])("chunks of %i samples change nothing", async (chunkSamples) => {
    expect(await run(model, options, samples, chunkSamples)).toEqual(events);
  });

  test("chunks of any sizes, empty ones too, change nothing", async () => {
    const stream = await VoiceChatStream.open(model, options);
    const random = new RandomGenerator(11);
    const heard: VoiceChatEvent[] = [];
    for (let at = 0; at < samples.length; ) {
      const chunk = samples.subarray(at, at + Math.floor(random.uniform(1)[0]! * 4000));
      heard.push(...(await stream.push(chunk, 16_000)));
      at += chunk.length;
    }
    expect([...heard, ...(await stream.flush())]).toEqual(events);
  });

  test("without the language cache it says the same", async () => {
    const short = samples.subarray(0, 6 * 1280);
    const uncached = await run(model, { ...options, useLanguageCache: false }, short, 1280);
    expect(uncached).toEqual(await run(model, options, short, 1280));
  });
});

describe("a live stream of tiny-f32", () => {
  const recording = readWav(readFileSync(`${FIXTURES}/audio/question.wav`)).samples;
  let model: VoiceChatModel;
  beforeAll(async () => {
    model = await VoiceChatModel.load(checkpointDirectory("tiny-f32"), { threads: 1 });
  });
  afterAll(() => model.close());

  test("sessions side by side give what each gives alone", async () => {
    const short = recording.subarray(0, 8 * 1280);
    const [first, second] = await Promise.all([
      run(model, { seed: 1 }, short, 1280),
      run(model, { seed: 2, systemPrompt: "Hello." }, short, 777),
    ]);
    expect(first).toEqual(await run(model, { seed: 1 }, short, 1280));
    expect(second).toEqual(await run(model, { seed: 2, systemPrompt: "Hello." }, short, 777));
    expect(audioOf(first)[1]).not.toEqual(audioOf(second)[1]);
  });

  test("without a system prompt the checkpoint's own is taken in", async () => {
    const directory = mkdtempSync(join(tmpdir(), "antiphon-own-prompt-"));
    const original = checkpointDirectory("tiny-f32");
    for (const name of readdirSync(original)) symlinkSync(join(original, name), join(directory, name));
    const config = JSON.parse(readFileSync(join(original, "config.json"), "utf8")) as object;
    rmSync(join(directory, "config.json"));
    writeFileSync(join(directory, "config.json"), JSON.stringify({ ...config, default_system_prompt: "Be kind." }));
    const own = await VoiceChatModel.load(directory, { threads: 1 });
    try {
      const short = recording.subarray(0, 4 * 1280);
      const asked = await run(model, { systemPrompt: "Be kind." }, short, 1280);
      expect(await run(own, {}, short, 1280)).toEqual(asked);
      expect(await run(own, { systemPrompt: "" }, short, 1280)).toEqual(await run(model, {}, short, 1280));
      expect(asked).not.toEqual(await run(model, {}, short, 1280));
    } finally {
      own.close();
      rmSync(directory, { recursive: true });
    }
  });

  test("without the perception cache it answers frame by frame all the same", async () => {
    const events = await run(model, { usePerceptionCache: false }, recording.subarray(0, 6 * 1280), 1280);
    expect(audioOf(events).map((event) => event.frameIndex)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(events.at(-1)).toEqual({ kind: "done", frameIndex: 6 });
  });

  test("refuses another rate, samples that are not numbers, and a closed session, and goes on after the first two", async () => {
    const stream = await VoiceChatStream.open(model);
    await expect(stream.push(new Float32Array(10), 24_000)).rejects.toThrow("expected 16000 Hz PCM, received 24000 Hz");
    await expect(stream.push(Float32Array.of(0, Number.NaN), 16_000)).rejects.toThrow("not numbers");
    expect(audioOf(await stream.push(new Float32Array(1280), 16_000))).toHaveLength(1);
    expect(await stream.cancel()).toEqual([{ kind: "cancelled", frameIndex: 1 }]);
    expect(stream.closed).toBe(true);
    await expect(stream.push(new Float32Array(1280), 16_000)).rejects.toThrow("closed");
    expect(await stream.flush()).toEqual([]);
    expect(await stream.cancel()).toEqual([]);
  });

  test("a partial frame is padded and run, or dropped, as flush is told", async () => {
    for (const [padPartial, frames] of [
      [true, 2],
      [false, 1],
    ] as const) {
      const stream = await VoiceChatStream.open(model);
      const before = await stream.push(recording.subarray(0, 2000), 16_000);
      const after = await stream.flush(padPartial);
      expect(audioOf([...before, ...after])).toHaveLength(frames);
      expect(after.at(-1)).toEqual({ kind: "done", frameIndex: frames });
    }
  });

  test("the limit refuses the frame that exceeds it; the frames before were answered", async () => {
    const stream = await VoiceChatStream.open(model, { maxStreamingSeconds: 0.16 });
    const seen: VoiceChatEvent[] = [];
    const push = stream.push(recording.subarray(0, 5 * 1280), 16_000, (event) => seen.push(event));
    await expect(push).rejects.toMatchObject({ code: "context_limit" });
    expect(audioOf(seen)).toHaveLength(2);
    await expect(stream.push(recording.subarray(0, 1280), 16_000)).rejects.toMatchObject({ code: "context_limit" });
    expect(await stream.flush()).toEqual([{ kind: "done", frameIndex: 2 }]);
  });

  // What was over the limit was dropped without a word where no chunk made a whole frame of it: a client that sends 10 ms at
  // a time was never told that nobody heard it.
  test("the limit is told to whoever sends in pieces smaller than a frame", async () => {
    const stream = await VoiceChatStream.open(model, { maxStreamingSeconds: 0.16 });
    for (let piece = 0; piece < 16; piece++) await stream.push(recording.subarray(0, 160), 16_000);
    for (let piece = 0; piece < 3; piece++) {
      const push = stream.push(recording.subarray(0, 160), 16_000);
      await expect(push).rejects.toMatchObject({ code: "context_limit" });
    }
    expect(await stream.flush()).toEqual([{ kind: "done", frameIndex: 2 }]);
  });

  // Divided as floating point, 2.32 s were 28 frames of 0.08 s and a bit, and a second of others likewise.
  test.each([0.08, 2.32, 3.76, 4.56])("a limit of %f s is as many whole frames as it holds", async (seconds) => {
    const frames = Math.round(seconds / 0.08);
    const stream = await VoiceChatStream.open(model, { maxStreamingSeconds: seconds });
    await stream.push(new Float32Array(frames * 1280), 16_000);
    expect(stream.frameIndex).toBe(frames);
    await expect(stream.push(new Float32Array(1), 16_000)).rejects.toMatchObject({ code: "context_limit" });
  });

  // The samples were read when their turn came. A caller that fills one array again and again, as audio callbacks do, had
  // the last of its chunks heard several times.
  test("an array is its caller's again as soon as it was pushed", async () => {
    const stream = await VoiceChatStream.open(model);
    const buffer = new Float32Array(1280);
    const pushes = [0, 1, 2, 3].map((frame) => {
      buffer.set(recording.subarray(frame * 1280, (frame + 1) * 1280));
      return stream.push(buffer, 16_000);
    });
    buffer.fill(0);
    const events = [...(await Promise.all(pushes)).flat(), ...(await stream.flush())];
    expect(events).toEqual(await run(model, {}, recording.subarray(0, 4 * 1280), 1280));
  });

  // It waited until everything that had been pushed was answered: half a minute of speech, for nobody.
  test("cancel drops what was pushed and not come to: the frame that is computed is the last", async () => {
    const stream = await VoiceChatStream.open(model);
    let cancelled: Promise<VoiceChatEvent[]> | undefined;
    const first = stream.push(recording.subarray(0, 9 * 1280), 16_000, ({ kind, frameIndex }) => {
      if (kind === "audio" && frameIndex === 1) cancelled = stream.cancel();
    });
    const second = stream.push(recording.subarray(0, 1280), 16_000);
    const flushed = stream.flush();
    expect(audioOf(await first).map(({ frameIndex }) => frameIndex)).toEqual([0, 1]);
    expect([await second, await flushed]).toEqual([[], []]);
    expect(await cancelled).toEqual([{ kind: "cancelled", frameIndex: 2 }]);
    await expect(stream.push(recording, 16_000)).rejects.toMatchObject({ code: "invalid_audio" });
  });

  // Whoever threw while it took an event had the same 80 ms heard a second time with the next push.
  test.each(["onEvent", "onFrame"])("a frame whose %s throws is not heard again", async (which) => {
    let thrown = 0;
    const throwOnce = (): void => {
      if (thrown++ === 0) throw new Error("the caller's own");
    };
    const onFrame = which === "onFrame" ? throwOnce : undefined;
    const stream = await VoiceChatStream.open(model, { onFrame });
    const onEvent = which === "onEvent" ? throwOnce : undefined;
    const short = recording.subarray(0, 3 * 1280);
    await expect(stream.push(short, 16_000, onEvent)).rejects.toThrow("the caller's own");
    const rest = [...(await stream.push(new Float32Array(0), 16_000)), ...(await stream.flush())];
    const whole = await run(model, {}, short, 1280);
    expect(rest).toEqual(whole.filter(({ frameIndex }) => frameIndex > 0));
  });

  test("what is pushed while it ends is refused; what cancels it then finds it ended", async () => {
    const stream = await VoiceChatStream.open(model);
    await stream.push(recording.subarray(0, 500), 16_000);
    const flushed = stream.flush();
    await expect(stream.push(recording, 16_000)).rejects.toMatchObject({ code: "invalid_audio" });
    expect(await stream.cancel()).toEqual([]);
    expect((await flushed).at(-1)).toEqual({ kind: "done", frameIndex: 1 });
  });

  test.each([0, 1, 1279, 1280])("flush after %i samples", async (count) => {
    for (const padPartial of [true, false]) {
      const stream = await VoiceChatStream.open(model);
      await stream.push(recording.subarray(0, count), 16_000);
      const frames = padPartial ? Math.ceil(count / 1280) : Math.floor(count / 1280);
      expect((await stream.flush(padPartial)).at(-1)).toEqual({ kind: "done", frameIndex: frames });
    }
  });

  // With no system prompt nobody looked at the signal.
  test("a stream whose caller has given up is not opened", async () => {
    await expect(VoiceChatStream.open(model, { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
  });

  test.each([{ seed: -1 }, { seed: 1.5 }, { maxStreamingSeconds: 0 }, { maxStreamingSeconds: Number.NaN }])(
    "refuses to open with %j",
    async (options) => {
      await expect(VoiceChatStream.open(model, options)).rejects.toMatchObject({ code: "invalid_value" });
    },
  );

  test("frames are timed stage by stage", async () => {
    const frames: number[] = [];
    const stream = await VoiceChatStream.open(model, { onFrame: (timing) => frames.push(timing.frameIndex) });
    await stream.push(new Float32Array(3 * 1280), 16_000);
    expect(frames).toEqual([0, 1, 2]);
  });
});
