import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../../src/audio/wav.ts";
import { VoiceChatModel } from "../../../src/engines/voicechat/model.ts";
import { generateOffline, type OfflineOptions, type OfflineResult } from "../../../src/engines/voicechat/offline.ts";
import { type GoldenTensor, goldenFloats, goldenIds, largestDifference, readGolden } from "../../support/golden.ts";
import { CHECKPOINTS, checkpointDirectory, FIXTURES, OTHER_CHECKPOINT } from "../../support/voicechat.ts";

interface OfflineJson {
  readonly prompt: string;
  readonly seed: number;
  readonly extra_decoding_seconds: number;
  readonly wav: string;
  readonly text: string;
  readonly user_transcript: string;
  readonly function_text: string;
}

describe.each([...CHECKPOINTS, OTHER_CHECKPOINT])("the offline run of %s", (name) => {
  const reference = `${FIXTURES}/${name}/reference`;
  const json = JSON.parse(readFileSync(`${reference}/offline.json`, "utf8")) as OfflineJson;
  const golden: Record<string, GoldenTensor> = readGolden(`${reference}/offline.safetensors`);
  const options: OfflineOptions = {
    samples: readWav(readFileSync(`${FIXTURES}/audio/${json.wav}`)).samples,
    systemPrompt: json.prompt,
    extraDecodingSeconds: json.extra_decoding_seconds,
    seed: json.seed,
  };
  let model: VoiceChatModel;
  let result: OfflineResult;
  beforeAll(async () => {
    model = await VoiceChatModel.load(checkpointDirectory(name), { threads: 1 });
    result = await generateOffline(model, options);
  });
  afterAll(() => model.close());

  test("writes the reference's tokens on both channels, and draws its codes", () => {
    expect(result.textIds).toEqual(goldenIds(golden, "text_tokens"));
    expect(result.functionIds).toEqual(goldenIds(golden, "function_tokens"));
    expect([...result.audioCodes]).toEqual(goldenIds(golden, "audio_codes"));
  });

  test("says, hears and sounds as the reference does", () => {
    expect(result.text).toBe(json.text);
    expect(result.functionText).toBe(json.function_text);
    expect(result.userTranscript).toBe(json.user_transcript);
    expect(result.hz).toBe(22_050);
    expect(largestDifference(result.samples, goldenFloats(golden, "audio"))).toBeLessThan(1e-4);
  });

  test("what cannot be run is refused before anything is", async () => {
    const refused: [Partial<OfflineOptions>, string][] = [
      [{ samples: Float32Array.of(0, Number.NaN) }, "not numbers"],
      [{ samples: new Float32Array(0), extraDecodingSeconds: 0 }, "empty"],
      [{ samples: new Float32Array(1201 * 16_000) }, "1201 s"],
      [{ extraDecodingSeconds: -1 }, "0 to 600 s"],
      [{ framesMax: 1 }, "at least 2 frames"],
      [{ seed: 0.5 }, "non-negative integer"],
      [{ systemPrompt: "word ".repeat(4000) }, "tokens; at most 4096 are taken"],
      [{ systemPrompt: " ".repeat(65_537) }, "65537 characters; at most 65536 are taken"],
    ];
    for (const [change, reason] of refused) {
      await expect(generateOffline(model, { ...options, ...change })).rejects.toThrow(reason);
    }
    await expect(generateOffline(model, { ...options, signal: AbortSignal.abort("enough") })).rejects.toBe("enough");
  });

  test("the same seed gives the same bytes, also beside another session", async () => {
    const [again, other] = await Promise.all([
      generateOffline(model, options),
      generateOffline(model, { ...options, seed: 7, framesMax: 12 }),
    ]);
    expect(again.samples).toEqual(result.samples);
    expect(other.audioCodes).not.toEqual(result.audioCodes.slice(0, other.audioCodes.length));
    const alone = await generateOffline(model, { ...options, seed: 7, framesMax: 12 });
    expect(alone.samples).toEqual(other.samples);
    expect(alone.textIds.length).toBe(12);
  });
});
