import { afterAll, describe, expect, it } from "vitest";
import { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../../src/checkpoint/weights.ts";
import { readConfig } from "../../../src/engines/voicechat/config-schema.ts";
import { Rnnt, rnntModels, symbolsText } from "../../../src/engines/voicechat/networks/rnnt.ts";
import { Runtime } from "../../../src/onnx/runtime.ts";
import { goldenFloats, goldenIds, largestDifference, readGolden } from "../../support/golden.ts";

const FIXTURES = "test/fixtures/voicechat";
const runtime = new Runtime({ threads: 1 });

describe.each(["tiny-f32", "tiny-bf16", "tiny-4bit", "tiny-8bit"])("rnnt of %s", (name) => {
  const golden = readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`);
  const directory = `${FIXTURES}/${name}/checkpoint`;
  const config = readConfig(directory);
  const checkpoint = Checkpoint.open(directory);
  const models = rnntModels(config.audioConfig, Weights.of(checkpoint).at("stt_model"));
  const loaded = Rnnt.load(runtime, config.audioConfig, config.rnntBlankId, models);
  afterAll(async () => {
    await (await loaded).close();
    checkpoint.close();
  });
  const width = config.audioConfig.encoder.dModel;
  const encoded = goldenFloats(golden, "encoded");
  const frame = (index: number): Float32Array => encoded.slice(index * width, (index + 1) * width);

  it("predicts and scores as the reference does, before and after each label", async () => {
    const rnnt = await loaded;
    let state = await rnnt.initialState();
    const [predictions, logits] = [[...state.prediction.data], [...(await rnnt.logits(state, frame(0)))]];
    for (const [index, label] of goldenIds(golden, "rnnt_labels").entries()) {
      state = await rnnt.emit(state, label);
      predictions.push(...state.prediction.data);
      logits.push(...(await rnnt.logits(state, frame(index + 1))));
    }
    // Float32 sums in another order.
    expect(largestDifference(predictions, goldenFloats(golden, "rnnt_prediction"))).toBeLessThan(1e-6);
    expect(largestDifference(logits, goldenFloats(golden, "rnnt_logits"))).toBeLessThan(1e-5);
    expect(largestDifference(state.h.data, goldenFloats(golden, "rnnt_h"))).toBeLessThan(1e-6);
    expect(largestDifference(state.c.data, goldenFloats(golden, "rnnt_c"))).toBeLessThan(1e-6);
  });

  it("stops a frame at the blank or at the most symbols", async () => {
    const rnnt = await loaded;
    let state = await rnnt.initialState();
    let total = 0;
    for (let index = 0; index < encoded.length / width; index++) {
      const result = await rnnt.step(state, frame(index));
      expect(result.symbols.length).toBeLessThanOrEqual(config.audioConfig.maxSymbols);
      expect(result.symbols).not.toContain(config.rnntBlankId);
      if (result.symbols.length < config.audioConfig.maxSymbols) {
        const scores = await rnnt.logits(result.state, frame(index));
        expect(scores.indexOf(Math.max(...scores))).toBe(config.rnntBlankId);
      }
      total += result.symbols.length;
      state = result.state;
    }
    expect(total).toBeGreaterThan(0);
  });
});

describe("symbolsText", () => {
  const vocabulary = ["<unk>", "▁the", "s", "<en-US>", "</s>", "<b>"];
  it("turns pieces into text and leaves out what is none", () => {
    expect(symbolsText([3, 1, 2, 0, 4, 5, 99], vocabulary)).toBe(" thes<b>");
  });
});
