import { afterAll, describe, expect, it } from "vitest";
import { Checkpoint } from "../../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../../src/checkpoint/weights.ts";
import { readConfig } from "../../../src/engines/voicechat/config-schema.ts";
import { LanguageModel } from "../../../src/engines/voicechat/language.ts";
import { languageModels } from "../../../src/engines/voicechat/networks/nemotron-h.ts";
import { Runtime } from "../../../src/onnx/runtime.ts";
import { goldenFloats, goldenIds, largestDifference, readGolden } from "../../support/golden.ts";
import { PlainLanguage } from "../../support/plain-language.ts";

const FIXTURES = "test/fixtures/voicechat";
const runtime = new Runtime({ threads: 1 });

/** Largest difference, against the largest value: what "relative" means for logits. */
const relative = (found: ArrayLike<number>, expected: Float32Array): number =>
  largestDifference(found, expected) / Math.max(...expected.map(Math.abs));

describe.each(["tiny-f32", "tiny-bf16", "tiny-4bit", "tiny-8bit"])("language model of %s", (name) => {
  const golden = readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`);
  const directory = `${FIXTURES}/${name}/checkpoint`;
  const config = readConfig(directory).textConfig;
  const checkpoint = Checkpoint.open(directory);
  const models = languageModels(config, Weights.of(checkpoint).at("stt_model"), "exact");
  const loaded = LanguageModel.load(runtime, config, models);
  afterAll(async () => {
    await (await loaded).close();
    checkpoint.close();
  });
  const ids = goldenIds(golden, "llm_ids");

  it("embeds tokens as the reference does", async () => {
    const rows = await Promise.all(ids.map(async (id) => [...(await loaded).embed(id)]));
    expect(largestDifference(rows.flat(), goldenFloats(golden, "llm_embeddings"))).toBeLessThan(1e-6);
  });

  it("gives the reference's hidden rows and logits position by position", async () => {
    const model = await loaded;
    const state = model.initialState();
    const [hidden, text, functions]: [number[], number[], number[]] = [[], [], []];
    for (const id of ids) {
      const row = await model.step(state, model.embed(id));
      const logits = await model.logits(row);
      const tokens = await model.tokens(row);
      expect(tokens.text).toBe(logits.text.indexOf(Math.max(...logits.text)));
      expect(tokens.function).toBe(logits.function.indexOf(Math.max(...logits.function)));
      hidden.push(...row);
      text.push(...logits.text);
      functions.push(...logits.function);
    }
    // The design allows 1e-3; exact products come within float32's own noise.
    expect(relative(hidden, goldenFloats(golden, "llm_hidden"))).toBeLessThan(1e-5);
    expect(relative(text, goldenFloats(golden, "llm_text_logits"))).toBeLessThan(1e-5);
    expect(relative(functions, goldenFloats(golden, "llm_function_logits"))).toBeLessThan(1e-5);
    const mamba = await model.mambaState(state, config.layers.indexOf("M"));
    expect(relative(mamba, goldenFloats(golden, "llm_mamba_state_0"))).toBeLessThan(1e-5);
    const first = state.mamba.get(config.layers.indexOf("M"));
    expect(relative(first?.conv.data ?? [], goldenFloats(golden, "llm_conv_state_0"))).toBeLessThan(1e-5);
  });
});

describe.each(["tiny-4bit", "tiny-8bit"])("fast products of %s", (name) => {
  it("come close, and not as close as exact ones", async () => {
    const golden = readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`);
    const directory = `${FIXTURES}/${name}/checkpoint`;
    const config = readConfig(directory).textConfig;
    const checkpoint = Checkpoint.open(directory);
    const models = languageModels(config, Weights.of(checkpoint).at("stt_model"), "fast");
    const model = await LanguageModel.load(runtime, config, models);
    const state = model.initialState();
    const hidden: number[] = [];
    for (const id of goldenIds(golden, "llm_ids")) hidden.push(...(await model.step(state, model.embed(id))));
    const error = relative(hidden, goldenFloats(golden, "llm_hidden"));
    expect(error).toBeLessThan(0.2);
    expect(error).toBeGreaterThan(1e-4);
    await model.close();
    checkpoint.close();
  });
});

describe("a long session", () => {
  const directory = `${FIXTURES}/tiny-f32/checkpoint`;
  const config = readConfig(directory).textConfig;
  const checkpoint = Checkpoint.open(directory);
  const stt = Weights.of(checkpoint).at("stt_model");
  const loaded = LanguageModel.load(runtime, config, languageModels(config, stt, "exact"));
  afterAll(async () => {
    await (await loaded).close();
    checkpoint.close();
  });

  it("stays with a plain loop through folded states and grown caches", async () => {
    const model = await loaded;
    const state = model.initialState();
    const plain = new PlainLanguage(config, stt.at("llm"));
    // Beyond a growth of every attention layer's cache, and many turns of every Mamba layer.
    for (let position = 0; position < 280; position++) {
      const embedding = model.embed((position * 31) % config.vocabSize);
      const [found, expected] = [await model.step(state, embedding), plain.step(embedding)];
      // Float32 against float64, through eight layers.
      expect(relative(found, Float32Array.from(expected))).toBeLessThan(2e-5);
    }
    expect(state.attention.positions).toBe(280);
  });

  it("gives two sessions side by side what each gives alone", async () => {
    const model = await loaded;
    const ids = Array.from({ length: 40 }, (_, i) => (i * 17) % config.vocabSize);
    const run = async (list: readonly number[]): Promise<number[]> => {
      const state = model.initialState();
      const rows: number[] = [];
      for (const id of list) rows.push(...(await model.step(state, model.embed(id))));
      return rows;
    };
    const reversed = [...ids].reverse();
    const alone = [await run(ids), await run(reversed)];
    expect(await Promise.all([run(ids), run(reversed)])).toEqual(alone);
  });
});
