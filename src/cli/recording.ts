/** A recording from disk as one channel at the rate that is asked for: WAV by ourselves, anything else through ffmpeg. */
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { allFinite, concatPcm } from "../audio/pcm.ts";
import { Resampler } from "../audio/resample.ts";
import { mixToMono, WavReader } from "../audio/wav.ts";
import { AppError } from "../errors.ts";

/** What `antiphon` says of a file that it cannot use begins with the file. */
const unreadable = (file: string, what: string, cause?: unknown): AppError =>
  new AppError("audio_unreadable", `${file}: ${what}`, cause === undefined ? {} : { cause });

/**
 * The channels' mean, resampled to `hz`. Reads no further than `secondsMax`.
 * @throws {AppError} audio_unreadable when the file cannot be read or decoded, is empty, or is longer than that.
 */
export async function readRecording(
  file: string,
  hz: number,
  secondsMax: number,
  signal: AbortSignal,
): Promise<Float32Array> {
  const pcm = (await isWav(file))
    ? await decodeWav(file, createReadStream(file, { signal }), hz, secondsMax)
    : await decodeOther(file, hz, secondsMax, signal);
  if (pcm.length === 0) throw unreadable(file, "there are no samples in it");
  return pcm;
}

async function isWav(file: string): Promise<boolean> {
  try {
    const handle = await open(file);
    try {
      const head = Buffer.alloc(12);
      const { bytesRead } = await handle.read(head, 0, 12);
      if (bytesRead === 0) throw unreadable(file, "the file is empty");
      return /^(RIFF|RIFX|RF64|BW64)$/.test(head.toString("latin1", 0, 4)) && head.toString("latin1", 8, 12) === "WAVE";
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw unreadable(file, `cannot be read (${(error as NodeJS.ErrnoException).code})`, error);
  }
}

async function decodeWav(file: string, bytes: Readable, hz: number, secondsMax: number): Promise<Float32Array> {
  const reader = new WavReader();
  const pieces: Float32Array[] = [];
  let resampler: Resampler | null = null;
  let seconds = 0;
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      const interleaved = reader.push(chunk);
      if (reader.format === null || interleaved.length === 0) continue;
      const mono = mixToMono(interleaved, reader.format.channels);
      if (!allFinite(mono)) throw unreadable(file, "it has samples that are not numbers");
      seconds += mono.length / reader.format.hz;
      if (seconds > secondsMax) throw unreadable(file, `longer than ${secondsMax} s, which is the limit`);
      resampler ??= new Resampler(reader.format.hz, hz);
      pieces.push(resampler.push(mono));
    }
    reader.finish();
    if (resampler !== null) pieces.push(resampler.flush());
  } catch (error) {
    if (error instanceof AppError && !error.message.startsWith(file)) throw unreadable(file, error.message, error);
    throw error;
  } finally {
    bytes.destroy();
  }
  return concatPcm(pieces);
}

/** ffmpeg finds the first audio track and writes it as WAV, at its own rate and with its own channels. */
async function decodeOther(file: string, hz: number, secondsMax: number, signal: AbortSignal): Promise<Float32Array> {
  const input = ["-nostdin", "-v", "error", "-i", `file:${file}`, "-map", "0:a:0"];
  const output = ["-t", String(secondsMax + 1), "-f", "wav", "-c:a", "pcm_f32le", "pipe:1"];
  const ffmpeg = spawn("ffmpeg", [...input, ...output], { stdio: ["ignore", "pipe", "pipe"], signal });
  const complaints: Buffer[] = [];
  ffmpeg.stderr.on("data", (chunk: Buffer) => complaints.push(chunk));
  const ended = new Promise<number | null>((resolve, reject) => {
    ffmpeg.on("error", reject);
    ffmpeg.on("close", resolve);
  });
  // Both are waited for, whichever fails first.
  const [pcm, status] = await Promise.allSettled([decodeWav(file, ffmpeg.stdout, hz, secondsMax), ended]);
  if (status.status === "rejected") {
    if ((status.reason as NodeJS.ErrnoException).code !== "ENOENT") throw status.reason;
    throw unreadable(
      file,
      "not a WAV file, and ffmpeg, which reads other formats, is not here; install it, or convert the file to WAV",
    );
  }
  if (pcm.status === "fulfilled" && status.value === 0) return pcm.value;
  if (pcm.status === "rejected" && /longer than/.test(String(pcm.reason))) throw pcm.reason;
  if (/matches no streams/.test(Buffer.concat(complaints).toString("utf8")))
    throw unreadable(file, "there is no sound in it");
  const said = Buffer.concat(complaints).toString("utf8").trim().split("\n").at(-1);
  throw unreadable(file, `neither a WAV file nor one that ffmpeg decodes: ${said || "it found no audio"}`);
}
