import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import type { TalkingEngine } from "../support/talking-engine.ts";
import { TRANSCRIPT, talkingServer } from "../support/talking-server.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, localStorage: any;

const QUESTION = "test/fixtures/questions/capital.wav";
const PATIENCE_MS = 120_000;

/** Skipped where there is no Chromium: set CHROMIUM to its path. */
describe.skipIf(!hasChromium)("the talk page in Chromium", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-page-"));
  let browser: Browser;
  let server: Server;
  let engine: TalkingEngine;
  const faults: string[] = [];

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    const microphone = join(directory, "microphone.wav");
    // A question, time for half an answer, and an interruption.
    await writeMicrophone(microphone, [0.8, QUESTION, 3.5, QUESTION, 30]);
    browser = await openBrowser(microphone);
    ({ server, engine } = await talkingServer({ maxSessions: "2" }));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  afterEach(() => expect(faults.splice(0)).toEqual([]));

  async function openPage(settings: object): Promise<Page> {
    const context = await browser.newContext({ permissions: ["microphone"] });
    // A question that a busy machine missed comes again with the recording, 40 s later.
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    await page.addInitScript((stored) => localStorage.setItem("antiphon.settings", stored), JSON.stringify(settings));
    await page.goto(server.url);
    return page;
  }
  const phase = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.dataset.phase === wanted, name);
  /** What the ring around the button shows, 0 to 1. */
  const loudness = (page: Page): Promise<number> =>
    page.evaluate(() => Number(document.getElementById("talk").style.getPropertyValue("--level")));
  const captions = (page: Page): Promise<string[]> => page.locator("#captions .caption p").allInnerTexts();
  async function end(...pages: Page[]): Promise<void> {
    for (const page of pages) {
      await page.click("#talk");
      await phase(page, "idle");
      await page.context().close();
    }
    await expect.poll(() => engine.openStreams, { timeout: PATIENCE_MS }).toBe(0);
  }

  it.each(["webrtc", "websocket"])(
    "talks over %s: hears, answers aloud, and stops when interrupted",
    async (transport) => {
      const page = await openPage({ transport });
      await page.click("#talk");
      await phase(page, "speaking");
      expect((await captions(page))[0]).toBe(TRANSCRIPT);
      await expect.poll(() => loudness(page), { timeout: PATIENCE_MS }).toBeGreaterThan(0.4);
      await page.waitForSelector("#captions s");
      const answer = await page.locator("#captions .assistant p").first().textContent();
      expect(answer).toMatch(/^word0 word1 /);
      const unheard = await page.locator("#captions s").first().textContent();
      expect(unheard).toMatch(/word29$/);
      // The interruption is a turn of its own, and is answered in turn.
      await page.waitForFunction(() => document.querySelectorAll("#captions .assistant").length >= 2);
      await page.click("#toggle-details");
      const latencies = await page.locator("#latency td").allInnerTexts();
      expect(latencies.slice(0, 3).every((ms) => Number(ms) >= 0)).toBe(true);
      expect(await page.locator("#events").textContent()).toContain("session.created");
      await end(page);
    },
  );

  it("takes text without a microphone, stops on Escape, and goes on", async () => {
    const page = await openPage({ transport: "webrtc" });
    await page.fill("#message", "Hello");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    expect((await captions(page))[0]).toBe("Hello");
    await page.keyboard.press("Escape");
    await phase(page, "listening");
    await page.fill("#message", "Again");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    await end(page);
  });

  it("talks while the space bar is held", async () => {
    const page = await openPage({ transport: "webrtc", turns: "push" });
    await page.click("#talk");
    await page.waitForSelector("#hold:not([hidden])");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.down(" ");
    expect(await page.locator("#phase").textContent()).toBe("Hearing you");
    // For as long as the question is.
    await expect.poll(() => loudness(page), { timeout: PATIENCE_MS }).toBeGreaterThan(0.4);
    await expect.poll(() => loudness(page), { timeout: PATIENCE_MS }).toBeLessThan(0.1);
    await page.keyboard.up(" ");
    await phase(page, "speaking");
    expect((await captions(page))[0]).toBe(TRANSCRIPT);
    await end(page);
  });

  it("says what to do when there is no microphone, and when the server is full or gone", async () => {
    const deaf = await openBrowser(null);
    try {
      const page = await deaf.newPage();
      await page.goto(server.url);
      await page.click("#talk");
      await page.waitForSelector("#problem:not([hidden])");
      expect(await page.locator("#problem").textContent()).toMatch(/microphone.*You can also type/is);
    } finally {
      await deaf.close();
    }
    const talkers = [await openPage({ transport: "webrtc" }), await openPage({ transport: "websocket" })];
    for (const talker of talkers) await talker.click("#talk");
    for (const talker of talkers) await phase(talker, "speaking");
    for (const transport of ["webrtc", "websocket"]) {
      const late = await openPage({ transport });
      await late.click("#talk");
      await late.waitForSelector("#problem:not([hidden])");
      expect(await late.locator("#problem").textContent()).toMatch(/The server is full.*Try again \(\d s\)/s);
      await late.context().close();
    }
    await end(...talkers);
    const page = await openPage({ transport: "webrtc" });
    await page.route("**/v1/realtime/calls", (route) => route.abort());
    await page.click("#talk");
    await page.waitForSelector("#problem:not([hidden])");
    expect(await page.locator("#problem-title").textContent()).toBe("The server does not answer");
    await page.unroute("**/v1/realtime/calls");
    await page.click("#problem button");
    await phase(page, "speaking");
    await end(page);
  });
});
