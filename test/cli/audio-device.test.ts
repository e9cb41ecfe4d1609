import { chmodSync, existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findAudioProgram, listDevices, Microphone, Speaker } from "../../src/cli/audio-device.ts";

/** A folder of programs that stand in for those of a machine with audio. */
let bin: string;
const path = process.env["PATH"];

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), "antiphon-bin-"));
});
afterEach(() => {
  process.env["PATH"] = path;
});

function program(name: string, body: string): void {
  const file = join(bin, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
}

const only = (): void => {
  process.env["PATH"] = bin;
};
// With the machine's own path behind it, whoever had PulseAudio installed saw its programs taken, and the tests fail.
const withShellTools = (): void => {
  for (const tool of ["cat", "sleep"]) {
    const place = (path ?? "").split(delimiter).find((directory) => existsSync(join(directory, tool)));
    symlinkSync(join(place ?? "", tool), join(bin, tool));
  }
  only();
};

describe.skipIf(process.platform !== "linux")("audio programs", () => {
  test("without any, the error says what to install and the way around", () => {
    only();
    expect(() => findAudioProgram()).toThrow(/apt install .*--input-file/);
  });

  test("the first family whose recorder and player are both there is taken", () => {
    program("parec", "");
    program("arecord", "");
    program("aplay", "");
    only();
    expect(findAudioProgram().name).toContain("ALSA");
  });

  test("the microphone's bytes come through; the speaker gets PCM16 and the device that was named", async () => {
    program("arecord", "printf 'abcdef'");
    program("aplay", `echo "$@" > ${join(bin, "args")}; cat > ${join(bin, "heard")}`);
    withShellTools();
    const alsa = findAudioProgram();
    const chunks: Buffer[] = [];
    for await (const chunk of new Microphone(alsa, 24_000, null).chunks()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("abcdef");

    const speaker = new Speaker(alsa, 24_000, "hw:1");
    speaker.write(new Float32Array([0, 0.5, -1]));
    await expect.poll(() => readFileSync(join(bin, "args"), "utf8")).toContain("-r 24000 -D hw:1");
    speaker.stop();
    await speaker.ended();
  });

  test("the microphone's bytes are cut into whole samples, however they come", async () => {
    program("arecord", "printf abc; sleep 0.1; printf de; sleep 0.1; printf fg");
    program("aplay", "");
    withShellTools();
    const chunks: Buffer[] = [];
    for await (const chunk of new Microphone(findAudioProgram(), 24_000, null).chunks()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("abcdef");
    for (const { length } of chunks) expect(length % 2).toBe(0);
  });

  test("a program that fails is quoted", async () => {
    program("arecord", "echo 'audio open error: No such file or directory' >&2; exit 1");
    program("aplay", "");
    withShellTools();
    const microphone = new Microphone(findAudioProgram(), 24_000, null);
    const read = async (): Promise<void> => {
      for await (const _ of microphone.chunks());
    };
    await expect(read()).rejects.toMatchObject({
      code: "audio_device",
      message: expect.stringContaining("audio open error: No such file or directory"),
    });
  });

  test("devices are listed as the programs list them", () => {
    program("arecord", "echo microphone-one");
    program("aplay", "echo speaker-one");
    withShellTools();
    const listed = listDevices(findAudioProgram());
    expect(listed).toContain("microphone-one");
    expect(listed).toContain("speaker-one");
  });
});
