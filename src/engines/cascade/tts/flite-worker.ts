/** The process that runs flite, a WebAssembly program: text on its command line, a WAV file in a folder of its own. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WASI } from "node:wasi";
import { mixToMono, readWav } from "../../../audio/wav.ts";
import { EngineError } from "../../../errors.ts";
import type { Method, Runtime } from "../../../workers/runtime.ts";

export type FliteTable = {
  readonly speak: Method<{ text: string; voice: string; speed: number }, { pcm: Float32Array; hz: number }>;
};

/** The part of the global WebAssembly that is used; the types of ES leave it out. */
const assembly = (globalThis as unknown as { WebAssembly: Assembly }).WebAssembly;
interface Assembly {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(program: object, imports: object): Promise<object>;
}

export async function load({ path }: { readonly path: string }): Promise<Runtime<FliteTable>> {
  const program = await assembly.compile(await readFile(path));
  const folder = await mkdtemp(join(tmpdir(), "antiphon-flite-"));
  process.on("exit", () => void rm(folder, { recursive: true, force: true }));

  const speak: Runtime<FliteTable>["speak"] = async ({ text, voice, speed }) => {
    const wasi = new WASI({
      version: "preview1",
      args: ["flite", "-voice", voice, "--setf", `duration_stretch=${1 / speed}`, "-t", text, "-o", "/out/speech.wav"],
      preopens: { "/out": folder },
      returnOnExit: true,
    });
    const instance = await assembly.instantiate(program, wasi.getImportObject());
    const status = wasi.start(instance);
    if (status !== 0) throw new EngineError("tts", `flite ended with status ${status}.`);
    const { samples, format } = readWav(await readFile(join(folder, "speech.wav")));
    return { pcm: mixToMono(samples, format.channels), hz: format.hz };
  };
  return { speak };
}
