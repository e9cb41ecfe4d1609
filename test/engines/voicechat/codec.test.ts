import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  codecDecoder,
  codecEncoder,
  decoderStateShapes,
  frameSamplesOf,
  OverlapAdd,
  spectraOf,
} from "../../../src/engines/voicechat/networks/codec.ts";
import { type Graph, Runtime, type Tensor, tensor, zeros } from "../../../src/onnx/runtime.ts";
import { goldenFloats, goldenIds, largestDifference } from "../../support/golden.ts";
import { CHECKPOINTS, openFixture, type VoiceChatFixture } from "../../support/voicechat.ts";

const runtime = new Runtime({ threads: 1 });

describe.each(CHECKPOINTS)("the codec of %s", (name) => {
  let fixture: VoiceChatFixture;
  let encoder: Graph;
  let decoder: Graph;
  beforeAll(async () => {
    fixture = openFixture(name);
    const weights = fixture.weights.at("tts_model.audio_codec");
    encoder = await runtime.load(codecEncoder(weights, fixture.config.codecConfig));
    decoder = await runtime.load(codecDecoder(weights, fixture.config.codecConfig));
  });
  afterAll(async () => {
    await Promise.all([encoder.close(), decoder.close()]);
    fixture.close();
  });

  /** Decodes these codes, `frames` at a time; the last step may be shorter. */
  async function decode(mode: "offline" | "streaming", frames: number): Promise<number[]> {
    const { golden, config } = fixture;
    const quantizers = config.codecConfig.numQuantizers;
    const codes = transposed(goldenIds(golden, "codec_codes"), quantizers);
    const overlap = new OverlapAdd(config.codecConfig, mode);
    let state: Record<string, Tensor> = Object.fromEntries(
      Object.entries(decoderStateShapes(config.codecConfig)).map(([key, shape]) => [key, zeros(...shape)]),
    );
    const samples: number[] = [];
    for (let at = 0; at < codes.length; at += frames * quantizers) {
      const part = Int32Array.from(codes.slice(at, at + frames * quantizers));
      const { windows, ...next } = await decoder.run({
        codes: tensor("i32", [part.length / quantizers, quantizers], part),
        ...state,
      });
      state = next;
      samples.push(...overlap.push(windows!.data as Float32Array));
    }
    return mode === "offline" ? [...samples, ...overlap.finish()] : samples;
  }

  test("encodes a tone to the reference's codes", async () => {
    const { golden, config } = fixture;
    const spectrum = spectraOf(goldenFloats(golden, "codec_waveform"), config.codecConfig);
    const channels = config.codecConfig.nFft + 2;
    const result = await encoder.run({ spectrum: tensor("f32", [spectrum.length / channels, channels], spectrum) });
    expect(
      largestDifference(result["latents"]!.data as Float32Array, goldenFloats(golden, "codec_latents")),
    ).toBeLessThan(1e-5);
    const expected = transposed(goldenIds(golden, "codec_codes"), config.codecConfig.numQuantizers);
    expect([...(result["codes"]!.data as Int32Array)]).toEqual(expected);
  });

  test("decodes as the reference does, whole and streamed", async () => {
    const { golden } = fixture;
    // The reference's own bound for audio is 1e-4; this is float32 in another order.
    expect(largestDifference(await decode("offline", 6), goldenFloats(golden, "codec_decoded"))).toBeLessThan(1e-5);
    expect(largestDifference(await decode("streaming", 1), goldenFloats(golden, "codec_stream_decoded"))).toBeLessThan(
      1e-5,
    );
  });

  test("decodes alike however the frames are grouped", async () => {
    for (const mode of ["offline", "streaming"] as const) {
      const whole = await decode(mode, 6);
      expect(whole.length).toBe(6 * frameSamplesOf(fixture.config.codecConfig));
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
