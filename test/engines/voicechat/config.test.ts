import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig, readConfig } from "../../../src/engines/voicechat/config-schema.ts";
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
    const config = parseConfig(
      { model_type: "nemotron_voicechat", text_config: { ...tiny().text_config, hidden_size: 4480 } },
      "config.json",
    );
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
    "groups of another size": [
      (json) => Object.assign(json["quantization"] as Json, { group_size: 32 }),
      "checkpoint_unsupported",
      "affine by 4 bits in groups of 32",
    ],
    "one module of 6 bits": [
      (json) => Object.assign(json["quantization"] as Json, { "stt_model.lm_head": { group_size: 64, bits: 6 } }),
      "checkpoint_unsupported",
      "affine by 6 bits",
    ],
    "another quantization": [
      (json) => Object.assign(json["quantization"] as Json, { mode: "mxfp4" }),
      "checkpoint_unsupported",
      "mxfp4",
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

  // A config.json with absurd numbers once ended in an ill-typed graph, a RangeError, or a process that took all memory.
  const CONTRADICTIONS: [string, Json, string][] = [
    ["text_config", { hidden_size: 1e9 }, "text_config.hidden_size"],
    ["text_config", { hidden_size: 130, head_dim: null }, "hidden_size 130 does not divide by num_attention_heads 4"],
    ["text_config", { hidden_size: 256 }, "output_dim 128 differs from text_config.hidden_size 256"],
    ["text_config", { num_key_value_heads: 3 }, "4 attention heads do not divide by 3 key-value heads"],
    ["text_config", { n_groups: 3 }, "8 mamba heads do not divide by n_groups 3"],
    ["text_config", { hybrid_override_pattern: "" }, "names no layer"],
    ["text_config", { hybrid_override_pattern: "M".repeat(1001) }, "at most 1000 layers"],
    ["text_config", { vocab_size: 12 }, "pad_token_id is 12, and vocab_size 12"],
    ["text_config", { layer_norm_epsilon: -1 }, "text_config.layer_norm_epsilon"],
    ["text_config", { time_step_limit: [1, 0] }, "runs from 1 to 0"],
    ["tts_config", { head_dim: 7 }, "tts_config: head_dim 7 is odd"],
    ["tts_config", { num_hidden_layers: 1e15 }, "tts_config.num_hidden_layers"],
    ["tts_config", { codebook_size: 41 }, "41 of 20, 40 of 20"],
    ["tts_config", { top_p: 1.5 }, "top_p is 1.5"],
    ["codec_config", { downsample_rates: [7, 7] }, "3 channel_multipliers and 2 downsample_rates"],
    ["codec_config", { hop_length: 16 }, "not larger than hop_length 16"],
    ["codec_config", { sample_rate: 24_000 }, "speaks 24000 Hz, and output_sample_rate is 22050"],
    ["", { frame_duration: 0.04 }, "frame_duration is 0.04 s; the encoder hears 1280 samples"],
    ["", { rnnt_blank_id: 30 }, "rnnt_blank_id is 30; the blank comes after the 31 classes"],
  ];
  it.each(CONTRADICTIONS)("refuses numbers that contradict each other: %s %j", (section, numbers, message) => {
    const json = tiny();
    Object.assign(section === "" ? json : (json[section] as Json), numbers);
    expect(() => parseConfig(json, "config.json")).toThrow(
      expect.objectContaining({ code: "checkpoint_corrupt", message: expect.stringContaining(message) }),
    );
  });

  it("says when it is missing, or not JSON", () => {
    const directory = temporaryDirectory();
    expect(() => readConfig(directory)).toThrow(expect.objectContaining({ code: "checkpoint_unreadable" }));
    writeFileSync(join(directory, "config.json"), "{");
    expect(() => readConfig(directory)).toThrow(expect.objectContaining({ code: "checkpoint_corrupt" }));
  });
});
