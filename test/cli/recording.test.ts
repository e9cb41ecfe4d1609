import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readWav, writeWav } from "../../src/audio/wav.ts";
import { readRecording } from "../../src/cli/recording.ts";
import { largestDifference } from "../support/golden.ts";
import { FIXTURES } from "../support/voicechat.ts";

const QUESTION = `${FIXTURES}/audio/question.wav`;
const ffmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "antiphon-recording-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const read = (file: string, hz = 16_000, secondsMax = 60): Promise<Float32Array> =>
  readRecording(file, hz, secondsMax, new AbortController().signal);

function written(name: string, content: string | Uint8Array): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

test("a file at the wanted rate comes as it is", async () => {
  expect(await read(QUESTION)).toEqual(readWav(readFileSync(QUESTION)).samples);
});

test("another rate is resampled through a filter", async () => {
  const tone = (hz: number): Float32Array =>
    Float32Array.from({ length: hz }, (_, n) => 0.5 * Math.sin((2 * Math.PI * 440 * n) / hz));
  // A tone above the new Nyquist frequency must go, not fold back.
  const high = Float32Array.from(
    tone(48_000),
    (value, n) => value + 0.3 * Math.sin((2 * Math.PI * 12_000 * n) / 48_000),
  );
  const pcm = await read(written("high.wav", writeWav(high, 48_000)));
  expect(pcm.length).toBe(16_000);
  // Away from the ends; the bound is the filter's stop band and 16 bits.
  expect(largestDifference(pcm.slice(500, -500), tone(16_000).slice(500, -500))).toBeLessThan(2e-4);
});

test.skipIf(!ffmpeg)("other formats come through ffmpeg, with their own rate and channels", async () => {
  const convert = (name: string, ...args: string[]): string => {
    const file = join(folder, name);
    spawnSync("ffmpeg", ["-nostdin", "-v", "error", "-y", "-i", QUESTION, ...args, file]);
    return file;
  };
  const { samples } = readWav(readFileSync(QUESTION));
  expect(await read(convert("question.flac"))).toEqual(samples);
  const stereo = await read(convert("stereo.wav", "-ac", "2", "-ar", "44100", "-c:a", "pcm_s24le"));
  expect(Math.abs(stereo.length - samples.length)).toBeLessThanOrEqual(1);
  expect((await read(convert("question.ogg"))).length).toBeGreaterThan(0.9 * samples.length);
});

test.skipIf(!ffmpeg)("what ffmpeg cannot read either is told with its reason", async () => {
  await expect(read(written("notes.txt", "not a sound"))).rejects.toThrow(/notes.txt: neither a WAV file nor/);
});

test("another format, where ffmpeg is not installed", async () => {
  const before = process.env["PATH"];
  process.env["PATH"] = folder;
  try {
    await expect(read(written("question.ogg", "OggS and so on"))).rejects.toThrow("not a WAV file, and ffmpeg");
  } finally {
    process.env["PATH"] = before;
  }
});

test("a recording longer than the limit is refused before it is read to its end", async () => {
  const file = written("long.wav", writeWav(new Float32Array(40), 4));
  await expect(read(file, 16_000, 9)).rejects.toThrow("longer than 9 s");
  expect((await read(file, 16_000, 10)).length).toBe(160_000);
});

// A damaged header with a rate of four billion ended in a RangeError, as a fault of antiphon.
test("a rate that no recorder has is refused", async () => {
  const wav = writeWav(new Float32Array(40), 8000);
  new DataView(wav.buffer).setUint32(24, 0xffffffff, true);
  await expect(read(written("fast.wav", wav))).rejects.toThrow(
    "fast.wav: the WAV file has 1 channels at 4294967295 Hz",
  );
});

// Found out only after the checkpoint was loaded, which takes most of a minute.
test("samples that are not numbers are refused where they are read", async () => {
  const wav = new DataView(writeWav(new Float32Array(2), 8000).buffer);
  wav.setUint16(20, 3, true);
  wav.setUint16(32, 4, true);
  wav.setUint16(34, 32, true);
  wav.setFloat32(44, Number.NaN, true);
  await expect(read(written("nan.wav", new Uint8Array(wav.buffer)))).rejects.toThrow(
    "nan.wav: it has samples that are not numbers",
  );
});

// The reason that was told was ffmpeg's advice to its own users: "add a trailing '?' to the map".
test.skipIf(!ffmpeg)("a film without sound is told as such", async () => {
  const film = join(folder, "silent.mp4");
  spawnSync("ffmpeg", ["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "color=c=red:s=32x32:d=1", film]);
  await expect(read(film)).rejects.toThrow("silent.mp4: there is no sound in it");
});
