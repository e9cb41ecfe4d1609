import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { whisperMel } from "../../src/audio/whisper-mel.ts";
import { noise, tone } from "../support/signals.ts";

const fixture = (path: string): Buffer => readFileSync(new URL(`../fixtures/${path}`, import.meta.url));

describe("whisperMel", () => {
  it("is what Smart Turn's own extractor makes of a spoken question behind silence", () => {
    const { samples } = readWav(fixture("voicechat/audio/question.wav"));
    const turn = new Float32Array(128_000);
    turn.set(samples, turn.length - samples.length);
    const features = whisperMel(turn);
    expect(features.length).toBe(80 * 800);
    const reference = fixture("audio/whisper-mel.f32");
    for (let i = 0; i < 50; i++) {
      for (let bin = 0; bin < 80; bin++) {
        const wanted = reference.readFloatLE(4 * (80 * i + bin));
        // The reference brings the signal to variance 1 in float32.
        expect(Math.abs(features[bin * 800 + 16 * i]! - wanted)).toBeLessThan(1e-5);
      }
    }
  });
  it("does not depend on the loudness", () => {
    const quiet = whisperMel(noise(16_000, 0.1));
    const loud = whisperMel(noise(16_000, 0.8));
    for (let i = 0; i < quiet.length; i++) expect(Math.abs(quiet[i]! - loud[i]!)).toBeLessThan(1e-4);
  });
  it("has its greatest energy in the bin of a tone", () => {
    const features = whisperMel(tone(1000, 16_000, 16_000));
    const column = Array.from({ length: 80 }, (_, bin) => features[bin * 100 + 50]!);
    // 1 kHz is 15 of 45.245 mels, and bin i is centred on mel (i + 1) * 45.245 / 81.
    expect(column.indexOf(Math.max(...column))).toBe(26);
  });
  it("takes silence, a short signal, and none", () => {
    expect(whisperMel(new Float32Array(16_000)).every((value) => value === -1.5)).toBe(true);
    expect(whisperMel(noise(201)).length).toBe(80);
    expect(whisperMel(noise(200)).length).toBe(0);
    expect(whisperMel(new Float32Array(0)).length).toBe(0);
  });
});
