/** The commands as child processes, as people run them. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { LIVE_SERVER_MS, LiveClient, type LiveServer, questionFile, questionPcm } from "../support/live-server.ts";

const run = promisify(execFile);
const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "antiphon-cli-"));
const environment = { ...process.env, XDG_DATA_HOME: directory, NO_COLOR: "1" };

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function antiphon(...args: string[]): Promise<Outcome> {
  try {
    const result = await run(process.execPath, ["--import", "tsx", main, ...args], { env: environment });
    return { status: 0, ...result };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

describe("the command line", () => {
  test("help and version", async () => {
    expect((await antiphon("--help")).stdout).toContain("antiphon COMMAND");
    expect((await antiphon("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const help = (await antiphon("serve", "--help")).stdout;
    expect(help).toContain("--drain-timeout-ms MS");
    expect(help).toContain("[default: 8765; ANTIPHON_PORT]");
    expect((await antiphon("talk", "--help")).stdout).toContain("--input-file FILE");
  });

  test.each([
    [["sevre"], 2, 'unknown command "sevre". Did you mean serve?'],
    [["serve", "--prot", "1"], 2, "unknown option --prot. Did you mean --port?"],
    [["serve", "--port", "x"], 2, "--port: "],
    [["serve", "--config", "/nowhere.json"], 2, "/nowhere.json: cannot be read (ENOENT)"],
    [["talk", "--input-file", "/nowhere.wav"], 1, "/nowhere.wav: cannot be read (ENOENT)"],
    [["talk", "--url", "ws://127.0.0.1:9", "--input-file", questionFile("capital")], 1, "nothing listens there"],
  ])(
    "%j ends with %i and says what to do",
    async (args, status, message) => {
      const outcome = await antiphon(...args);
      expect(outcome.stderr).toContain(message);
      expect(outcome.status).toBe(status);
      expect(outcome.stderr).not.toContain("    at ");
    },
    30_000,
  );

  test("doctor looks at the machine", async () => {
    const { stdout } = await antiphon("doctor", "--json");
    const findings = JSON.parse(stdout) as { status: string; what: string }[];
    for (const what of ["Node.js", "cores", "memory", "model silero-vad", "npm"]) {
      expect(findings.map((finding) => finding.what)).toContain(what);
    }
  });
});

describe("serve and talk", () => {
  let child: ChildProcess;
  let url = "";
  let announced = "";
  const server = (): LiveServer => ({
    url: url.replace(/^ws/, "http").replace("/v1/realtime", ""),
    secureUrl: "",
    caFile: "",
  });
  beforeAll(async () => {
    const args = [
      "--import",
      "tsx",
      main,
      "serve",
      "--port",
      "0",
      "--llm",
      "local",
      "--threads",
      "1",
      "--log-level",
      "error",
      "--drain-timeout-ms",
      "60000",
    ];
    child = spawn(process.execPath, args, { env: environment });
    child.stdout?.on("data", (chunk: Buffer) => {
      announced += chunk.toString();
    });
    while (!announced.includes("stop ")) await once(child.stdout!, "data");
    url = /^api +(\S+)$/m.exec(announced)?.[1] ?? "";
  }, LIVE_SERVER_MS);
  afterAll(() => {
    child.kill("SIGKILL");
  });

  test("serve says where it is, what it uses, where to talk and how to stop", () => {
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/v1\/realtime$/);
    expect(announced).toMatch(/^stages +vad silero, .*stt moonshine, llm smollm2-135m, tts piper$/m);
    expect(announced).toMatch(/^llm +smollm2-135m \(.+\)$/m);
    expect(announced).toMatch(/^talk +.*antiphon talk --url ws:/m);
    expect(announced).toMatch(/^stop +Ctrl-C$/m);
  });

  test("talk plays a recorded question, prints both sides, and writes the spoken answer", async () => {
    const file = join(directory, "answer.wav");
    const { stdout, stderr, status } = await antiphon(
      "talk",
      "--url",
      url,
      "--input-file",
      questionFile("capital"),
      "--output-file",
      file,
    );
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^You: {4}What is the capital of France\?\nAnswer: .*Paris/);
    expect(status).toBe(0);
    const { format, samples } = readWav(readFileSync(file));
    expect(format).toMatchObject({ hz: 24_000, channels: 1 });
    expect(samples.length / format.hz).toBeGreaterThan(0.5);
  });

  test("talk of a recording in which nobody speaks says so", async () => {
    const file = join(directory, "silence.wav");
    const silence = readFileSync(questionFile("capital"));
    writeFileSync(file, silence.fill(0, 44));
    const { stderr, status } = await antiphon("talk", "--url", url, "--input-file", file);
    expect(stderr).toContain("heard no speech");
    expect(status).toBe(1);
  });

  /** The process of a stage: a child of the server whose memory maps that stage's runtime. */
  async function workerWith(library: string): Promise<number> {
    const { stdout } = await run("ps", ["-o", "pid=", "--ppid", `${child.pid}`]);
    const pids = stdout.trim().split(/\s+/).map(Number);
    const found = pids.find((pid) => readFileSync(`/proc/${pid}/maps`, "utf8").includes(library));
    if (found === undefined) throw new Error(`no worker has ${library}`);
    return found;
  }

  test.skipIf(process.platform !== "linux")(
    "kill -9 of the language model in the middle of an answer fails that answer alone; the next one works",
    async () => {
      const client = await LiveClient.open(server());
      client.say(questionPcm("story"));
      await client.until("response.created");
      process.kill(await workerWith("node-llama-cpp"), "SIGKILL");
      expect(await client.until("error")).toMatchObject({ error: { code: "worker_died" } });
      expect((await client.until("response.done"))["response"]).toMatchObject({ status: "failed" });
      // The same session, as soon as the model is back.
      await expect.poll(async () => (await client.ask("capital")).status, { timeout: 90_000 }).toBe("completed");
      client.close();
    },
    120_000,
  );

  test("SIGTERM: the running answer is finished, then the process ends with 0", async () => {
    const client = await LiveClient.open(server());
    client.say(questionPcm("capital"));
    await client.until("response.created");
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    expect((await client.until("response.done"))["response"]).toMatchObject({ status: "completed" });
    expect(await ended).toEqual([0, null]);
  });
});
