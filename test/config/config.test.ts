import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { configOptions, ENV_PREFIX, loadConfig } from "../../src/config.ts";
import { ConfigError } from "../../src/errors.ts";
import { envOf, rows } from "../../src/util/options.ts";

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "antiphon-config-")), "antiphon.config.json");
  writeFileSync(path, text);
  return path;
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  throw new Error("expected a ConfigError");
}

describe("precedence", () => {
  test("defaults < file < environment < flags", () => {
    const path = file(JSON.stringify({ port: 1001, host: "file", maxSessions: 3 }));
    const env = { ANTIPHON_PORT: "1002", ANTIPHON_HOST: "environment" };
    const config = loadConfig({ file: path, env, flags: { port: "1003" } });
    expect(config).toMatchObject({ port: 1003, host: "environment", maxSessions: 3, vad: "silero" });
  });

  test("is frozen", () => {
    expect(Object.isFrozen(loadConfig({ env: {} }))).toBe(true);
  });

  test("the product's own variable beats the shared one", () => {
    expect(loadConfig({ env: { OPENAI_API_KEY: "shared" } }).llmApiKey).toBe("shared");
    expect(loadConfig({ env: { OPENAI_API_KEY: "shared", ANTIPHON_LLM_API_KEY: "own" } }).llmApiKey).toBe("own");
    expect(loadConfig({ env: { HF_TOKEN: "t", HF_ENDPOINT: "http://mirror" } })).toMatchObject({
      hfToken: "t",
      hfEndpoint: "http://mirror",
    });
  });

  test("the server's own key is never the one for OpenAI", () => {
    expect(loadConfig({ env: { OPENAI_API_KEY: "shared" } }).apiKey).toBeNull();
  });

  test("ICE servers are read under the shared name too, and the product's own name beats it", () => {
    const [own, shared] = ["stun:own.example", "stun:shared.example"].map((urls) => JSON.stringify([{ urls }]));
    const iceServers = (env: Record<string, string>): string | null => loadConfig({ env }).iceServers;
    expect(iceServers({ SPEECH_TO_SPEECH_ICE_SERVERS: shared! })).toBe(shared);
    expect(iceServers({ SPEECH_TO_SPEECH_ICE_SERVERS: shared!, ANTIPHON_ICE_SERVERS: own! })).toBe(own);
  });

  test("every option can be set by its environment variable", () => {
    const samples: Record<string, string> = {
      tlsCert: "cert",
      tlsKey: "key",
      threads: "3",
      port: "81",
      maxSessions: "5",
      apiPrefix: "/voice",
    };
    for (const [key, option] of rows(configOptions({}))) {
      const text =
        samples[key] ??
        option.choices?.at(-1) ??
        (option.kind === "number" ? "2048" : option.kind === "boolean" ? "true" : "http://127.0.0.1:1");
      const env: Record<string, string> = { [envOf(key, option, ENV_PREFIX)[0]!]: text };
      if (key === "tlsCert") env["ANTIPHON_TLS_KEY"] = "key";
      if (key === "tlsKey") env["ANTIPHON_TLS_CERT"] = "cert";
      if (key === "alias") env["ANTIPHON_MODEL"] = "directory";
      if (key === "sttBaseUrl") env["ANTIPHON_STT"] = "openai";
      if (key === "ttsBaseUrl") env["ANTIPHON_TTS"] = "openai";
      const set = (loadConfig({ env }) as unknown as Record<string, unknown>)[key];
      expect(set, key).not.toEqual(option.default);
    }
  });
});

describe("what is wrong is named, with the nearest that would be right", () => {
  test("an unknown variable", () => {
    expect(refusal(() => loadConfig({ env: { ANTIPHON_PROT: "1" } }))).toContain("Did you mean ANTIPHON_PORT?");
  });
  test("an unknown key of the file", () => {
    const message = refusal(() => loadConfig({ env: {}, file: file('{"maxSesions": 1}') }));
    expect(message).toContain('unknown option "maxSesions"');
    expect(message).toContain("Did you mean maxSessions?");
  });
  test("a value that is none of the choices", () => {
    const message = refusal(() => loadConfig({ env: {}, flags: { stt: "whsiper" } }));
    expect(message).toContain("--stt");
    expect(message).toContain("Did you mean whisper?");
  });
  test.each([
    ["not a number", { ANTIPHON_PORT: "eighty" }, "ANTIPHON_PORT"],
    ["out of range", { ANTIPHON_PORT: "70000" }, "65535"],
    ["half a number", { ANTIPHON_MAX_SESSIONS: "1.5" }, "ANTIPHON_MAX_SESSIONS"],
    ["not a boolean", { ANTIPHON_OFFLINE: "perhaps" }, "ANTIPHON_OFFLINE"],
    ["not an address", { ANTIPHON_LLM_BASE_URL: "localhost" }, "http://"],
  ])("%s", (_name, env, expected) => {
    expect(refusal(() => loadConfig({ env }))).toContain(expected);
  });
  test("all problems at once, not the first alone", () => {
    const message = refusal(() => loadConfig({ env: { ANTIPHON_PORT: "x" }, flags: { vad: "x" } }));
    expect(message.split("\n")).toHaveLength(2);
  });
  test("a number in the file that is text", () => {
    expect(loadConfig({ env: {}, file: file('{"port": "81"}') }).port).toBe(81);
    expect(refusal(() => loadConfig({ env: {}, file: file('{"port": [81]}') }))).toContain("port");
  });
  test("a file that is missing, or not JSON, or no object", () => {
    expect(refusal(() => loadConfig({ env: {}, file: "/nowhere/antiphon.json" }))).toContain("ENOENT");
    expect(refusal(() => loadConfig({ env: {}, file: file("{") }))).toContain("not JSON");
    expect(refusal(() => loadConfig({ env: {}, file: file("[]") }))).toContain("JSON object");
  });
  test("options that contradict each other", () => {
    expect(refusal(() => loadConfig({ env: {}, flags: { tlsCert: "a" } }))).toContain("--tls-key");
    expect(refusal(() => loadConfig({ env: {}, flags: { sttBaseUrl: "http://a" } }))).toContain("--stt openai");
  });
  test("a key never shows in a message", () => {
    const path = file('{"apiKey": ["very-secret"]}');
    expect(refusal(() => loadConfig({ env: {}, file: path }))).not.toContain("very-secret");
  });
});
