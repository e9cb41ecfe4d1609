import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { floatToPcm16 } from "../../src/audio/pcm.ts";
import type { Server } from "../../src/server/server.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import { LIVE_SERVER_MS, liveServer, QUESTIONS, questionFile, transcribe } from "../support/live-server.ts";
import { recordSound, SOUND_HZ, takeSound, untilHeard } from "../support/page-sound.ts";
import { talkingServer } from "../support/talking-server.ts";
import { wordErrors } from "../support/word-errors.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, localStorage: any;

/** The talking engine answers with this tone, for 12 s. */
const TONE = { hz: 440, peak: 0.3, seconds: 12 };
const LOUD = 0.02;

describe.skipIf(!hasChromium)("what is heard on the talk page", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-sound-"));
  const browsers: Browser[] = [];
  let server: Server;

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    ({ server } = await talkingServer());
  });
  afterAll(async () => {
    for (const browser of browsers) await browser.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  /** A browser of its own: a fake microphone begins with it. */
  async function openPage(url: string, microphone: (number | string)[], settings: object): Promise<Page> {
    const file = join(directory, `${browsers.length}.wav`);
    await writeMicrophone(file, microphone);
    const browser = await openBrowser(file);
    browsers.push(browser);
    const context = await browser.newContext({ permissions: ["microphone"], bypassCSP: true });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    await recordSound(page);
    await page.addInitScript((stored) => localStorage.setItem("antiphon.settings", stored), JSON.stringify(settings));
    await page.goto(url);
    return page;
  }
  async function close(page: Page): Promise<void> {
    await page.click("#talk");
    await page.context().browser()?.close();
  }
  const phase = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.dataset.phase === wanted, name);

  it("is over a WebSocket all that was sent, without a click between chunks or where it is cut", async () => {
    const page = await openPage(server.url, [60], { transport: "websocket" });
    await page.fill("#message", "Hello");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    await phase(page, "listening");
    const whole = await takeSound(page);
    const energy = whole.reduce((sum, x) => sum + x * x, 0);
    // A slope of 4 ms at the start, and wherever a busy machine made a gap, takes some of it.
    expect(energy / (0.5 * TONE.peak ** 2 * TONE.seconds * SOUND_HZ)).toBeGreaterThan(0.98);
    await page.fill("#message", "Again");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    await page.keyboard.press("Escape");
    await phase(page, "listening");
    const heard = await takeSound(page);
    expect(heard.length).toBeGreaterThan(whole.length);
    // What the tone changes by from one sample to the next, what the slope adds to that, and a bit of PCM16.
    const steepest = (2 * Math.PI * TONE.hz * TONE.peak) / SOUND_HZ + TONE.peak / (0.004 * SOUND_HZ) + 2 / 32_768;
    const clicks = heard.filter((x, i) => Math.abs(x - (heard[i - 1] ?? 0)) > steepest);
    expect(clicks).toHaveLength(0);
    await close(page);
  });

  it("is nothing more of an answer that was stopped, however late the rest of it comes", async () => {
    // What was on its way when the user stopped an answer over a WebSocket was played when it came.
    const page = await openPage(server.url, [60], { transport: "websocket" });
    const late: (string | Buffer)[] = [];
    let soonSamples = 0;
    await page.routeWebSocket(/realtime/, (socket) => {
      const upstream = socket.connectToServer();
      upstream.onMessage((message) => {
        if (soonSamples > SOUND_HZ) return void late.push(message);
        const event = JSON.parse(String(message)) as { type: string; delta?: string };
        if (event.type === "response.output_audio.delta")
          soonSamples += Buffer.from(String(event.delta), "base64").length / 2;
        socket.send(message);
      });
      socket.onMessage((message) => {
        upstream.send(message);
        if (!String(message).includes("conversation.item.truncate")) return;
        for (const one of late.splice(0)) socket.send(one);
        soonSamples = Number.NEGATIVE_INFINITY;
      });
    });
    await page.reload();
    await page.fill("#message", "Hello");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    await expect.poll(() => late.length, { timeout: 60_000 }).toBeGreaterThan(10);
    const sentSamples = soonSamples;
    await page.keyboard.press("Escape");
    await untilHeard(page);
    expect((await takeSound(page)).filter((x) => x !== 0).length).toBeLessThanOrEqual(sentSamples);
    expect(await page.locator("#phase").textContent()).not.toBe("Speaking");
    await close(page);
  });

  it.each(["webrtc", "websocket"])("falls silent when the user speaks: over %s", async (transport) => {
    const question = questionFile("capital");
    const page = await openPage(server.url, [0.8, question, 3.5, question, 60], { transport });
    await page.click("#talk");
    await page.waitForSelector("#captions s");
    await page.waitForFunction(() => document.querySelectorAll("#captions .assistant").length >= 2);
    await phase(page, "speaking");
    await phase(page, "listening");
    await untilHeard(page);
    // The first answer was cut off in the middle, and nothing was heard while the user spoke on.
    const [first, second] = voices(await takeSound(page));
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(0.8 * TONE.seconds * SOUND_HZ);
    expect(second).toBeGreaterThan(0.95 * TONE.seconds * SOUND_HZ);
    await close(page);
  });

  it.each(["webrtc", "websocket"])(
    "is the answer of the captions: over %s",
    async (transport) => {
      const live = await liveServer();
      const page = await openPage(live.url, [0.5, questionFile("capital"), 60], { transport });
      await page.click("#talk");
      await phase(page, "speaking");
      await phase(page, "listening");
      await untilHeard(page);
      const [question, answer] = await page.locator("#captions .caption p").allTextContents();
      expect(wordErrors(QUESTIONS["capital"]!, question!).errors).toBeLessThanOrEqual(1);
      const pcm = floatToPcm16(await takeSound(page));
      const heard = await transcribe(live, Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength));
      // Through Opus and the smallest recognizer, which hears "Francis" in "France is": by letters, not by words.
      const { rate } = wordErrors(letters(answer!), letters(heard));
      expect(rate, `said "${answer}", heard "${heard}"`).toBeLessThanOrEqual(0.35);
      await close(page);
    },
    LIVE_SERVER_MS,
  );
});

/** The lengths of what was loud, in samples; pauses up to 400 ms are part of it. */
function voices(samples: Float32Array): number[] {
  const found: { start: number; end: number }[] = [];
  samples.forEach((x, at) => {
    if (Math.abs(x) < LOUD) return;
    const last = found.at(-1);
    if (last !== undefined && at - last.end < 0.4 * SOUND_HZ) last.end = at;
    else found.push({ start: at, end: at });
  });
  return found.map(({ start, end }) => end - start);
}

/** Each as a word of its own. */
const letters = (text: string): string =>
  text
    .replaceAll(/[^a-z]/gi, "")
    .split("")
    .join(" ");
