import { beforeAll, describe, expect, it } from "vitest";

const HZ = 24_000;
const BLOCK = 128;

type Message = { type: string } & Record<string, unknown>;
interface Processor {
  readonly port: { onmessage: (event: { data: object }) => void };
  process(inputs: never[], outputs: Float32Array[][]): boolean;
}
let Playback: new (options: object) => Processor;
const posted: Message[] = [];

beforeAll(async () => {
  Object.assign(globalThis, {
    sampleRate: HZ,
    AudioWorkletProcessor: class {
      port = { postMessage: (message: Message) => posted.push(message) };
    },
    registerProcessor: (_name: string, processor: typeof Playback) => {
      Playback = processor;
    },
  });
  await import("../../web/playback-worklet.ts");
});

function player(inputHz: number = HZ) {
  posted.length = 0;
  const processor = new Playback({ processorOptions: { inputHz } });
  const send = (data: object): void => processor.port.onmessage({ data });
  const play = (samples: number): number[] => {
    const heard: number[] = [];
    while (heard.length < samples) {
      const output = new Float32Array(BLOCK);
      processor.process([], [[output]] as unknown as Float32Array[][]);
      heard.push(...output);
    }
    return heard;
  };
  const push = (itemId: string, samples: Float32Array): void => send({ type: "push", itemId, samples });
  return { push, play, clear: () => send({ type: "clear" }) };
}

const tone = (samples: number, from = 0): Float32Array =>
  Float32Array.from({ length: samples }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 200 * (from + i)) / HZ));
const steepest = (heard: number[]): number =>
  heard.reduce((most, x, i) => Math.max(most, Math.abs(x - (heard[i - 1] ?? 0))), 0);
/** What a tone of 200 Hz at 0.5 changes by from sample to sample, with some room for the slope over it. */
const CALM = 0.5 * ((2 * Math.PI * 200) / HZ) * 1.3;

describe("the playback worklet", () => {
  it("plays chunks of any size as one sound", () => {
    const { push, play } = player();
    for (let at = 0, size = 1; at < 12_000; at += size, size = (size * 7) % 997) {
      push("a", tone(Math.min(size, 12_000 - at), at));
    }
    const heard = play(14_000);
    const start = heard.findIndex((x) => x !== 0);
    const body = heard.slice(start + 200, start + 11_500);
    const expected = tone(12_000).slice(200 + 1, 11_500 + 1);
    const errors = body.map((x, i) => Math.abs(x - expected[i]!));
    expect(errors.reduce((most, error) => Math.max(most, error), 0)).toBeLessThan(0.03);
    expect(steepest(heard)).toBeLessThan(CALM);
    expect(posted.filter(({ type }) => type === "playing").map(({ isPlaying }) => isPlaying)).toEqual([true]);
    play(HZ);
    expect(posted.at(-1)).toEqual({ type: "playing", isPlaying: false });
  });

  it("stops within a few milliseconds of clear, without a click, and says what was heard", () => {
    const { push, play, clear } = player();
    push("a", tone(2 * HZ));
    const before = play(HZ / 2);
    clear();
    const after = play(HZ / 10);
    expect(after.slice(2 * BLOCK).every((x) => x === 0)).toBe(true);
    expect(steepest([...before, ...after])).toBeLessThan(CALM);
    const cleared = posted.find(({ type }) => type === "cleared");
    const heardMs = before.filter((x) => x !== 0).length / (HZ / 1000);
    expect(cleared?.["itemId"]).toBe("a");
    expect(Math.abs(Number(cleared?.["playedMs"]) - heardMs)).toBeLessThan(15);
    expect(posted.at(-1)).toEqual({ type: "playing", isPlaying: false });
    push("b", tone(HZ / 2));
    expect(Math.max(...play(HZ / 2))).toBeGreaterThan(0.4);
  });

  it("bridges a gap in the stream with a slope", () => {
    const { push, play } = player();
    push("a", tone(4000));
    const heard = play(9000);
    push("a", tone(4000));
    heard.push(...play(6000));
    expect(steepest(heard)).toBeLessThan(CALM);
  });

  it("goes on without a click when sound comes right after a clear, or just after a gap began", () => {
    // New sound began at once and in full, while the old one was still on its slope of 4 ms.
    const { push, play, clear } = player();
    push("a", tone(HZ));
    const heard = play(HZ / 4 + 31);
    clear();
    push("b", tone(HZ / 4));
    heard.push(...play(HZ / 2));
    expect(steepest(heard)).toBeLessThan(CALM);
    for (let offset = 0; offset < BLOCK; offset += 9) {
      const { push, play } = player();
      push("a", tone(4000 + offset));
      const heard = play(4000 + offset);
      push("a", tone(4000));
      heard.push(...play(5000));
      expect(steepest(heard)).toBeLessThan(CALM);
    }
  });

  it("counts each item from its own start", () => {
    const { push, play, clear } = player();
    push("a", tone(4800));
    push("b", tone(48_000));
    play(HZ / 2);
    clear();
    play(BLOCK * 4);
    const cleared = posted.find(({ type }) => type === "cleared");
    expect(cleared?.["itemId"]).toBe("b");
    expect(Number(cleared?.["playedMs"])).toBeLessThan(310);
    expect(Number(cleared?.["playedMs"])).toBeGreaterThan(200);
  });

  it("keeps the pitch where the device has another rate", () => {
    const { push, play } = player(12_000);
    push(
      "a",
      Float32Array.from({ length: 6000 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 200 * i) / 12_000)),
    );
    const heard = play(12_000).slice(3000, 9000);
    const crossings = heard.filter((x, i) => i > 0 && x > 0 !== heard[i - 1]! > 0).length;
    expect(Math.abs(crossings - 2 * 200 * (6000 / HZ))).toBeLessThanOrEqual(2);
  });
});
