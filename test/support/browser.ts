/** Real Chromium with a microphone that plays a file. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { type Browser, chromium } from "playwright-core";
import { concatPcm } from "../../src/audio/pcm.ts";
import { resample } from "../../src/audio/resample.ts";
import { mixToMono, readWav, writeWav } from "../../src/audio/wav.ts";

const CHROMIUM: string = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const hasChromium: boolean = existsSync(CHROMIUM);

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--autoplay-policy=no-user-gesture-required",
];

/** Without `microphoneFile` the browser has no microphone. */
export function openBrowser(microphoneFile: string | null): Promise<Browser> {
  const microphone =
    microphoneFile === null
      ? []
      : [
          "--use-fake-ui-for-media-stream",
          "--use-fake-device-for-media-stream",
          `--use-file-for-fake-audio-capture=${microphoneFile}`,
        ];
  return chromium.launch({ executablePath: CHROMIUM, args: [...ARGUMENTS, ...microphone] });
}

/** Writes what the microphone is to hear: seconds of silence, and files spoken. */
export async function writeMicrophone(path: string, parts: readonly (number | string)[]): Promise<void> {
  const pieces: Float32Array[] = [];
  for (const part of parts)
    pieces.push(typeof part === "number" ? new Float32Array(part * 48_000) : await spoken(part));
  await writeFile(path, writeWav(concatPcm(pieces), 48_000));
}

async function spoken(path: string): Promise<Float32Array> {
  const { format, samples } = readWav(await readFile(path));
  return resample(mixToMono(samples, format.channels), format.hz, 48_000);
}
