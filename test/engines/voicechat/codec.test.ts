import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  Codec,
  type CodecModels,
  codecModels,
  encodeOnce,
  frameSamplesOf,
} from "../../../src/engines/voicechat/networks/codec.ts";
import { Runtime } from "../../../src/onnx/runtime.ts";
import { goldenFloats, goldenIds, largestDifference } from "../../support/golden.ts";
import { CHECKPOINTS, openFixture, type VoiceChatFixture } from "../../support/voicechat.ts";

const runtime = new Runtime({ threads: 1 });

describe.each(CHECKPOINTS)("the codec of %s", (name) => {
  let fixture: VoiceChatFixture;
  let models: CodecModels;
  let codec: Codec;
  beforeAll(async () => {
    fixture = openFixture(name);
    const { codecConfig } = fixture.config;
    models = codecModels(codecConfig, fixture.weights.at("tts_model.audio_codec"));
    codec = await Codec.load(runtime, codecConfig, models.decoder);
  });
  afterAll(async () => {
    await codec.close();
    fixture.close();
  });

  /** Decodes the reference's codes, `frames` at a time; the last step may be shorter. */
  async function decode(mode: "offline" | "streaming", frames: number): Promise<number[]> {
    const quantizers = codec.config.numQuantizers;
    const codes = transposed(goldenIds(fixture.golden, "codec_codes"), quantizers);
    const stream = codec.stream(mode);
    const samples: number[] = [];
    for (let at = 0; at < codes.length; at += frames * quantizers) {
      samples.push(...(await stream.push(Int32Array.from(codes.slice(at, at + frames * quantizers)))));
    }
    return mode === "offline" ? [...samples, ...stream.finish()] : samples;
  }

  test("encodes a tone to the reference's codes", async () => {
    const { golden } = fixture;
    const waveform = goldenFloats(golden, "codec_waveform");
    const { codes, latents } = await encodeOnce(runtime, codec.config, models.encoder, waveform);
    expect(largestDifference(latents, goldenFloats(golden, "codec_latents"))).toBeLessThan(1e-5);
    expect([...codes]).toEqual(transposed(goldenIds(golden, "codec_codes"), codec.config.numQuantizers));
  });

  test("decodes as the reference does, whole and streamed", async () => {
    const { golden } = fixture;
    // The bound for audio is 1e-4; this is float32 in another order.
    expect(largestDifference(await decode("offline", 6), goldenFloats(golden, "codec_decoded"))).toBeLessThan(1e-5);
    const streamed = goldenFloats(golden, "codec_stream_decoded");
    expect(largestDifference(await decode("streaming", 1), streamed)).toBeLessThan(1e-5);
  });

  test("decodes alike however the frames are grouped", async () => {
    for (const mode of ["offline", "streaming"] as const) {
      const whole = await decode(mode, 6);
      expect(whole.length).toBe(6 * frameSamplesOf(codec.config));
      for (const frames of [1, 2, 4]) expect(largestDifference(await decode(mode, frames), whole)).toBeLessThan(1e-6);
    }
  });
});

/** [Q, T] -> [T, Q] */
function transposed(codes: readonly number[], quantizers: number): number[] {
  const frames = codes.length / quantizers;
  return Array.from(
    { length: codes.length },
    (_, at) => codes[(at % quantizers) * frames + Math.floor(at / quantizers)]!,
  );
}
