import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readConfig } from "../../../src/engines/voicechat/config.ts";
import { parseConfig } from "../../../src/engines/voicechat/config-schema.ts";
import { temporaryDirectory } from "../../support/safetensors.ts";

const FIXTURE = "test/fixtures/voicechat/tiny-4bit/checkpoint";
type Json = Record<string, unknown>;
const tiny = (): Json & Record<"text_config" | "audio_config" | "tts_config", Json> =>
  JSON.parse(readFileSync(join(FIXTURE, "config.json"), "utf8"));

describe("config.json", () => {
  it("gives the fixture's dimensions", () => {
    const config = readConfig(FIXTURE);
    expect(config.textConfig).toMatchObject({
      hiddenSize: 128,
      headDim: 32,
      layers: ["M", "-", "M", "*", "-", "M", "*", "-"],
    });
    expect(config.textConfig.timeStepLimit).toEqual([0, Number.POSITIVE_INFINITY]);
    expect(config.audioConfig.encoder).toMatchObject({ dModel: 48, leftFrames: 10 });
    expect(config.ttsConfig.mogHead.numPredictions).toBe(44);
    expect(config.rnntVocabulary.length).toBe(31);
  });

  it("takes the published dimensions where keys are absent", () => {
    const config = parseConfig({ model_type: "nemotron_voicechat", text_config: tiny().text_config }, "config.json");
    expect(config.audioConfig).toMatchObject({
      outputDim: 4480,
      maxSymbols: 10,
      encoder: { nLayers: 24, dModel: 1024, leftFrames: 70 },
    });
    expect(config.ttsConfig).toMatchObject({ hiddenSize: 1152, numHiddenLayers: 28, slidingWindow: 7500, topP: 0.95 });
    expect(config.codecConfig).toMatchObject({ baseChannels: 384, downsampleRates: [7, 7, 9], numQuantizers: 31 });
    expect(config).toMatchObject({
      padTokenId: 12,
      functionChannelWeight: 2,
      speaker: "Aria",
      defaultSystemPrompt: "",
    });
  });

  it("reads infinities as Python and Transformers write them", () => {
    const directory = temporaryDirectory();
    const written = (limit: string): readonly [number, number] => {
      const text = JSON.stringify({ ...tiny(), text_config: { ...tiny().text_config, time_step_limit: "LIMIT" } });
      writeFileSync(join(directory, "config.json"), text.replace('"LIMIT"', limit));
      return readConfig(directory).textConfig.timeStepLimit;
    };
    expect(written("[0.5, Infinity]")).toEqual([0.5, Number.POSITIVE_INFINITY]);
    expect(written('[0.5, {"__float__": "Infinity"}]')).toEqual([0.5, Number.POSITIVE_INFINITY]);
    expect(written("[0.001, 0.1]")).toEqual([0.001, 0.1]);
  });

  const REFUSED: Record<string, [(json: ReturnType<typeof tiny>) => void, string, string]> = {
    "another model": [
      (json) => Object.assign(json, { model_type: "qwen3" }),
      "checkpoint_unsupported",
      'model_type is "qwen3"',
    ],
    "another speaker": [
      (json) => Object.assign(json, { speaker: "Leo" }),
      "checkpoint_unsupported",
      'speaker is "Leo"',
    ],
    "a mixture of experts": [
      (json) => Object.assign(json.text_config, { hybrid_override_pattern: "ME" }),
      "checkpoint_unsupported",
      "hybrid_override_pattern",
    ],
    "look-ahead": [
      (json) => Object.assign(json.audio_config["encoder"] as Json, { att_context_size: [[70, 1]] }),
      "checkpoint_unsupported",
      "att_context_size",
    ],
    "batch normalization": [
      (json) => Object.assign(json.audio_config["encoder"] as Json, { conv_norm_type: "batch_norm" }),
      "checkpoint_unsupported",
      "conv_norm_type",
    ],
    "a voice without gated fusion": [
      (json) => Object.assign(json.tts_config, { use_gated_fusion_for_text_audio: false }),
      "checkpoint_unsupported",
      "gated fusion",
    ],
    "a size that is text": [
      (json) => Object.assign(json.text_config, { hidden_size: "big" }),
      "checkpoint_corrupt",
      "text_config.hidden_size",
    ],
    "no language model": [
      (json) => Object.assign(json, { text_config: undefined }),
      "checkpoint_corrupt",
      "text_config",
    ],
  };
  it.each(Object.keys(REFUSED))("refuses %s", (name) => {
    const [change, code, message] = REFUSED[name]!;
    const json = tiny();
    change(json);
    expect(() => parseConfig(json, "config.json")).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  it("says when it is missing, or not JSON", () => {
    const directory = temporaryDirectory();
    expect(() => readConfig(directory)).toThrow(expect.objectContaining({ code: "checkpoint_unreadable" }));
    writeFileSync(join(directory, "config.json"), "{");
    expect(() => readConfig(directory)).toThrow(expect.objectContaining({ code: "checkpoint_corrupt" }));
  });
});
