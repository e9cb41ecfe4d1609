import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codecModels } from "../../../src/engines/voicechat/networks/codec.ts";
import { SpeechBackbone } from "../../../src/engines/voicechat/networks/speech-backbone.ts";
import { SubwordEncoder } from "../../../src/engines/voicechat/networks/subword-encoder.ts";
import { promptCodes, Speech, type SpeechModels, speechModels } from "../../../src/engines/voicechat/speech.ts";
import { Runtime } from "../../../src/onnx/runtime.ts";
import { RandomGenerator } from "../../../src/util/rng.ts";
import { goldenFloats, goldenIds, largestDifference } from "../../support/golden.ts";
import { CHECKPOINTS, openFixture, type VoiceChatFixture, vocabularyOf } from "../../support/voicechat.ts";

const runtime = new Runtime({ threads: 1 });
/** Float32 in another order, through six layers: values are of size 1. */
const TOLERANCE = 2e-5;

describe.each(CHECKPOINTS)("the voice of %s", (name) => {
  let fixture: VoiceChatFixture;
  let models: SpeechModels;
  let speech: Speech;
  beforeAll(async () => {
    fixture = openFixture(name);
    const tts = fixture.weights.at("tts_model");
    models = speechModels(fixture.config, tts);
    const codec = codecModels(fixture.config.codecConfig, tts.at("audio_codec"));
    speech = await Speech.load(runtime, fixture.config, models, codec, vocabularyOf(name));
  });
  afterAll(async () => {
    await speech.close();
    fixture.close();
  });

  test("a token is spelled and flagged as in the reference", async () => {
    const { golden, config } = fixture;
    const { ttsConfig } = config;
    const subword = await SubwordEncoder.load(runtime, ttsConfig, models.subword, vocabularyOf(name));
    const expected = goldenFloats(golden, "subword_embedding");
    for (const [index, id] of goldenIds(golden, "subword_ids").entries()) {
      const row = expected.subarray(index * ttsConfig.hiddenSize, (index + 1) * ttsConfig.hiddenSize);
      expect(largestDifference(await subword.embed(id), row)).toBeLessThan(TOLERANCE);
      // The second time it is remembered.
      expect(largestDifference(await subword.embed(id), row)).toBeLessThan(TOLERANCE);
    }
    await subword.close();
  });

  test("the voice prompt leaves the backbone as in the reference", async () => {
    const { golden, config } = fixture;
    const codec = codecModels(config.codecConfig, fixture.weights.at("tts_model.audio_codec"));
    const codes = await promptCodes(runtime, config, models, codec);
    expect([...codes]).toEqual(goldenIds(golden, "tts_prompt_codes"));
    const backbone = await SpeechBackbone.load(runtime, config.ttsConfig, models.backbone);
    const hidden = await speech.warmUp(backbone.initialState(), codes);
    await backbone.close();
    // The reference has [2, F, D], here it is F times [2, D].
    const width = config.ttsConfig.hiddenSize;
    const expected = goldenFloats(golden, "tts_warmup_hidden");
    for (const [position, rows] of hidden.entries()) {
      for (const row of [0, 1]) {
        const at = (row * hidden.length + position) * width;
        const ours = rows.subarray(row * width, (row + 1) * width);
        expect(largestDifference(ours, expected.subarray(at, at + width))).toBeLessThan(TOLERANCE);
      }
    }
  });

  test("three steps give the reference's codes", async () => {
    const { golden } = fixture;
    const state = speech.initialState(new RandomGenerator(5));
    const codes: number[] = [];
    for (const token of goldenIds(golden, "tts_step_tokens")) codes.push(...(await speech.step(state, token)));
    expect(codes).toEqual(goldenIds(golden, "tts_step_codes"));
  });

  test("two sessions side by side speak as each alone", async () => {
    const tokens = goldenIds(fixture.golden, "tts_step_tokens");
    const [a, b] = [speech.initialState(new RandomGenerator(1)), speech.initialState(new RandomGenerator(2))];
    const mixed: number[][] = [];
    for (const token of tokens) mixed.push([...(await speech.step(a, token))], [...(await speech.step(b, token))]);
    const alone = speech.initialState(new RandomGenerator(2));
    for (const [index, token] of tokens.entries()) {
      expect([...(await speech.step(alone, token))]).toEqual(mixed[2 * index + 1]);
    }
  });

  test("the end of an utterance goes on from silence", async () => {
    const { config } = fixture;
    const [a, b] = [speech.initialState(new RandomGenerator(3)), speech.initialState(new RandomGenerator(3))];
    a.codes = Int32Array.from(models.silenceCodes, (code) => (code + 1) % config.ttsConfig.codebookSize);
    b.codes = models.silenceCodes;
    expect(await speech.step(a, config.eosTokenId)).toEqual(await speech.step(b, config.eosTokenId));
  });

  test("control codes are silence for the codec, codebook by codebook", () => {
    const control = [...models.controlCodes][0] as number;
    const codes = Int32Array.from(models.silenceCodes, (_, index) => (index % 2 === 0 ? control : 0));
    const audible = speech.audible(codes);
    for (const [index, code] of audible.entries()) expect(code).toBe(index % 2 === 0 ? models.silenceCodes[index] : 0);
  });
});
