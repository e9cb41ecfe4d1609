import { afterAll, describe, expect, it } from "vitest";
import { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../../src/checkpoint/weights.ts";
import { readConfig } from "../../../src/engines/voicechat/config-schema.ts";
import { Conformer, conformerModels } from "../../../src/engines/voicechat/networks/conformer.ts";
import { Runtime } from "../../../src/onnx/runtime.ts";
import { goldenFloats, largestDifference, readGolden } from "../../support/golden.ts";

const FIXTURES = "test/fixtures/voicechat";
const runtime = new Runtime({ threads: 1 });

async function loadConformer(name: string): Promise<{ conformer: Conformer; featIn: number; dModel: number }> {
  const directory = `${FIXTURES}/${name}/checkpoint`;
  const { audioConfig } = readConfig(directory);
  const checkpoint = Checkpoint.open(directory);
  const models = conformerModels(audioConfig, Weights.of(checkpoint).at("stt_model.perception"));
  const conformer = await Conformer.load(runtime, audioConfig, models);
  checkpoint.close();
  return { conformer, featIn: audioConfig.encoder.featIn, dModel: audioConfig.encoder.dModel };
}

describe.each(["tiny-f32", "tiny-bf16", "tiny-4bit", "tiny-8bit"])("conformer of %s", (name) => {
  const golden = readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`);
  const loaded = loadConformer(name);
  afterAll(async () => (await loaded).conformer.close());

  it("encodes a whole utterance as the reference does", async () => {
    const { conformer } = await loaded;
    const result = await conformer.encode(goldenFloats(golden, "mel"));
    expect(result.frames).toBe(golden["encoded"]?.shape[1]);
    // The reference's sums run in another order: float32 over a few thousand products.
    expect(largestDifference(result.encoded, goldenFloats(golden, "encoded"))).toBeLessThan(1e-5);
    expect(largestDifference(result.projected, goldenFloats(golden, "projected"))).toBeLessThan(1e-5);
  });

  it("gives the same encoding in chunks of any size", async () => {
    const { conformer } = await loaded;
    for (const chunkFrames of [1, 3, 11]) {
      const result = await conformer.encode(goldenFloats(golden, "mel"), chunkFrames);
      expect(largestDifference(result.encoded, goldenFloats(golden, "encoded"))).toBeLessThan(1e-5);
    }
  });

  it("encodes a live stream frame by frame as the reference does", async () => {
    const { conformer, featIn, dModel } = await loaded;
    const mel = goldenFloats(golden, "stream_mel");
    const expected = goldenFloats(golden, "stream_encoded");
    const state = conformer.initialState();
    const encoded = new Float32Array(expected.length);
    for (let frame = 0, at = 0; frame < expected.length / dModel; frame++) {
      const count = frame === 0 ? 1 : 8;
      const result = await conformer.step(state, mel.slice(at * featIn, (at + count) * featIn));
      encoded.set(result.encoded, frame * dModel);
      at += count;
    }
    expect(largestDifference(encoded, expected)).toBeLessThan(1e-5);
  });
});
