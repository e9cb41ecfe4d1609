import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VoiceChatModel } from "../../../src/engines/voicechat/model.ts";
import { generateOffline } from "../../../src/engines/voicechat/offline.ts";
import { temporaryDirectory } from "../../support/safetensors.ts";
import { checkpointDirectory } from "../../support/voicechat.ts";

/** A copy of the tiny checkpoint, to be spoilt. */
function copy(): string {
  const directory = join(temporaryDirectory(), "modèle 你好");
  cpSync(checkpointDirectory("tiny-4bit"), directory, { recursive: true });
  return directory;
}

interface Json {
  [key: string]: Json;
}

function rewrite(path: string, change: (json: Json) => void): void {
  const json = JSON.parse(readFileSync(path, "utf8")) as Json;
  change(json);
  writeFileSync(path, JSON.stringify(json));
}

/** What is refused must be so before any network is loaded. */
const refusalOf = (directory: string): Promise<unknown> =>
  VoiceChatModel.load(directory, {
    onPart: () => {
      throw new Error("began to load");
    },
  }).then(
    () => null,
    (error: unknown) => error,
  );

/** Overwrites a bf16 tensor of the first shard that has it. */
function spoil(directory: string, tensor: string): void {
  for (const shard of ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]) {
    const path = join(directory, shard);
    const bytes = readFileSync(path);
    const headerBytes = Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
    if (header[tensor] === undefined) continue;
    const [start, end] = header[tensor].data_offsets as [number, number];
    for (let at = start; at < end; at += 2) bytes.writeUInt16LE(BF16_NAN, 8 + headerBytes + at);
    writeFileSync(path, bytes);
    return;
  }
  throw new Error(`no ${tensor}`);
}

const BF16_NAN = 0x7fc0;

// Weights that are not numbers gave tokens and sound like any others, and the status of success.
describe("a checkpoint with weights that are not numbers", () => {
  it.each([
    ["encoder", "stt_model.perception.encoder.layers.0.norm_out.bias"],
    ["language model", "stt_model.llm.norm_f.weight"],
    ["voice", "tts_model.tts_model.backbone.norm.weight"],
    ["mixture head", "tts_model.tts_model.mog_head.proj_else.weight"],
    ["codec", "tts_model.audio_codec.decoder.layers.0.weight"],
  ])("is found out by what the %s gives", async (network, tensor) => {
    const directory = copy();
    spoil(directory, tensor);
    const run = async (): Promise<unknown> => {
      const model = await VoiceChatModel.load(directory, { threads: 1 });
      try {
        return await generateOffline(model, { samples: new Float32Array(3840), systemPrompt: "" });
      } finally {
        await model.close();
      }
    };
    await expect(run()).rejects.toMatchObject({
      code: "engine_failed",
      message: expect.stringContaining(`the ${network} gave numbers that are not finite`),
    });
  });
});

describe("loading a checkpoint", () => {
  it("works from a folder with spaces and accents, and with a shard that lies elsewhere behind a link", async () => {
    const directory = copy();
    const elsewhere = join(directory, "..", "other disk");
    mkdirSync(elsewhere);
    const shard = "model-00002-of-00002.safetensors";
    renameSync(join(directory, shard), join(elsewhere, shard));
    symlinkSync(join(elsewhere, shard), join(directory, shard));
    const model = await VoiceChatModel.load(directory, { threads: 1 });
    expect(model.config.textConfig.hiddenSize).toBe(128);
    await model.close();
  });

  // Sizes that no tensor had made an ill-typed graph, whose error said nothing of the checkpoint.
  it("says which tensors do not fit, even where no graph can be made of the sizes", async () => {
    for (const [section, key, value] of [
      ["text_config", "mamba_num_heads", 1000],
      ["text_config", "hybrid_override_pattern", "*-M*-M*-"],
      ["codec_config", "base_channels", 9],
      ["tts_config", "num_quantizers", 30],
    ] as const) {
      const directory = copy();
      rewrite(join(directory, "config.json"), (json) => {
        Object.assign(json[section]!, { [key]: value });
        if (key === "num_quantizers") Object.assign(json["codec_config"]!, { [key]: value });
      });
      expect(await refusalOf(directory)).toMatchObject({
        code: "checkpoint_tensor",
        message: expect.stringMatching(/expected .* found|missing/),
      });
    }
  });

  // A prompt with a token beyond the embedding table read past the tensor, in the middle of a session.
  it("refuses a tokenizer with tokens that the model has not", async () => {
    const directory = copy();
    rewrite(join(directory, "tokenizer.json"), (json) => Object.assign(json["model"]!["vocab"]!, { zork: 329 }));
    expect(await refusalOf(directory)).toMatchObject({
      code: "checkpoint_corrupt",
      message: expect.stringContaining('token "zork" has id 329; the model of config.json has 329 tokens'),
    });
  });

  it.each([
    ["", "checkpoint_corrupt"],
    ["null", "checkpoint_corrupt"],
    ['{"model":{"type":"Unknown","vocab":{}}}', "checkpoint_corrupt"],
  ])("refuses a tokenizer.json of %j", async (text, code) => {
    const directory = copy();
    writeFileSync(join(directory, "tokenizer.json"), text);
    expect(await refusalOf(directory)).toMatchObject({ code });
  });
});
