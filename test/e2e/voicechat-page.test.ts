import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import { Peer, voiceChatServer } from "../support/voicechat-server.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, localStorage: any;

const PROMPT = "You are brief.";
const SECONDS_60 = { timeout: 60_000 };

describe.skipIf(!hasChromium)("the talk page of a VoiceChat server, in Chromium", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-voicechat-page-"));
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    const microphone = join(directory, "microphone.wav");
    await writeMicrophone(microphone, [0.4, "test/fixtures/questions/capital.wav", 1]);
    browser = await openBrowser(microphone);
    server = await voiceChatServer();
  });
  // A page that a failed test left open would hold the one place of the server.
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  /** A page, the frames it sent and those it got. */
  async function openPage(settings: object = {}) {
    const page = await (await browser.newContext({ permissions: ["microphone"] })).newPage();
    const faults: string[] = [];
    const sent: Record<string, unknown>[] = [];
    const received: Record<string, unknown>[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("websocket", (socket) => {
      socket.on("framesent", ({ payload }) => sent.push(JSON.parse(String(payload))));
      socket.on("framereceived", ({ payload }) => received.push(JSON.parse(String(payload))));
    });
    await page.addInitScript((stored) => localStorage.setItem("antiphon.settings", stored), JSON.stringify(settings));
    await page.goto(server.url);
    await page.waitForFunction(() => document.body.dataset.dialect === "voicechat");
    return { page, faults, sent, received };
  }
  const isShown = (page: Page, selector: string): Promise<boolean> => page.locator(selector).isVisible();

  it("hears in 80 ms, answers aloud, and shows transcript, answer and function channel", SECONDS_60, async () => {
    const { page, faults, sent, received } = await openPage({ instructions: PROMPT, seed: 7, turns: "push" });
    await page.click("#talk");
    await page.waitForFunction(() => document.body.dataset.phase === "speaking", undefined, SECONDS_60);
    await page.waitForSelector("#captions .caption.assistant p:not(.dots)", SECONDS_60);
    const of = (events: typeof sent, type: string) => events.filter((event) => event["type"] === type);
    expect(of(sent, "session.update")).toEqual([
      { type: "session.update", session: { system_prompt: PROMPT, seed: 7 } },
    ]);
    const [append] = of(sent, "input_audio_buffer.append");
    expect(append?.["sample_rate"]).toBe(16_000);
    expect(Buffer.from(String(append?.["audio"]), "base64").length).toBe(2 * 1280);
    expect(of(received, "response.audio.delta")[0]?.["sample_rate"]).toBe(22_050);
    // What the model said on each channel is what the page shows of it.
    const shown = { you: "conversation.item.input_audio_transcription.delta", assistant: "response.text.delta" };
    for (const [speaker, type] of Object.entries({ ...shown, function: "response.function.delta" })) {
      const isShownAsSaid = async (): Promise<boolean> => {
        const texts = await page.locator(`#captions .${speaker} p`).allTextContents();
        return (texts.join("") !== "") === of(received, type).length > 0;
      };
      await expect.poll(isShownAsSaid, SECONDS_60).toBe(true);
    }
    expect(await isShown(page, "#stop")).toBe(false);
    expect(await isShown(page, "#compose")).toBe(false);
    expect(await isShown(page, "#hold")).toBe(false);
    await page.click("#mute");
    await page.click("#open-settings");
    expect(await isShown(page, "#seed")).toBe(true);
    for (const name of ["#voice", "input[name=turns]", "input[name=transport]"]) {
      expect(await page.locator(name).first().isVisible()).toBe(false);
    }
    await page.keyboard.press("Escape");
    await page.click("#talk");
    await page.waitForFunction(() => document.body.dataset.phase === "idle");
    expect(sent.at(-1)).toEqual({ type: "session.cancel" });
    expect(faults).toEqual([]);
  });

  it("says that the server is full, and goes in when a place is free", SECONDS_60, async () => {
    const other = await Peer.ready(server);
    const { page, faults } = await openPage();
    await page.click("#talk");
    await page.waitForSelector("#problem:not([hidden])");
    expect(await page.locator("#problem").textContent()).toMatch(/The server is full.*Try again/s);
    other.say({ type: "session.cancel" });
    await other.closed;
    await page.click("#problem button");
    await page.waitForFunction(() => document.body.dataset.phase === "speaking", undefined, SECONDS_60);
    await page.context().close();
    // The tab is gone: its place is free again.
    const health = async (): Promise<unknown> => (await fetch(`${server.url}/health`)).json();
    await expect.poll(health, SECONDS_60).toMatchObject({ sessions: 0 });
    expect(faults).toEqual([]);
  });

  it("says why settings are refused, and offers neither text nor WebRTC", SECONDS_60, async () => {
    const { page } = await openPage({ seed: 2 ** 70 });
    await page.click("#talk");
    await page.waitForSelector("#problem:not([hidden])");
    expect(await page.locator("#problem-title").textContent()).toBe("The settings were refused");
    expect(await page.locator("#problem-advice").textContent()).toContain("seed");
    await page.context().close();
    const call = await fetch(`${server.url}/v1/realtime/calls`, {
      method: "POST",
      headers: { "Content-Type": "application/sdp" },
      body: "v=0",
    });
    expect(call.status).toBeGreaterThanOrEqual(400);
    const capabilities = await (await fetch(`${server.url}/v1/capabilities`)).json();
    expect(capabilities).toMatchObject({ dialect: "voicechat", transports: ["websocket"], accepts_text: false });
  });
});
