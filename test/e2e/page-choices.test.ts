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

/** How long the button is held is the subject: a slip of a quarter of a second is no turn. */
const LONGER_THAN_A_SLIP_MS = 400;

/** What the user chooses takes effect: voice, instructions, how a turn is taken, and a call that goes on. */
describe.skipIf(!hasChromium)("the choices of the talk page", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-choices-"));
  const pages: Page[] = [];
  let browser: Browser;
  let server: Server;
  let engine: TalkingEngine;

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    const microphone = join(directory, "microphone.wav");
    await writeMicrophone(microphone, [60]);
    browser = await openBrowser(microphone);
    ({ server, engine } = await talkingServer());
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.context().close();
  });

  async function openPage(settings: object, look: object = {}): Promise<Page> {
    const context = await browser.newContext({ permissions: ["microphone"], ...look });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    pages.push(page);
    await page.goto(server.url);
    await page.evaluate((stored) => localStorage.setItem("antiphon.settings", stored), JSON.stringify(settings));
    await page.reload();
    return page;
  }
  const phase = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.dataset.phase === wanted, name);
  async function say(page: Page, text: string): Promise<void> {
    await page.fill("#message", text);
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
  }
  const transports = it.each(["webrtc", "websocket"]);

  transports("speaks in the voice and by the instructions that were chosen: over %s", async (transport) => {
    const page = await openPage({ transport });
    await page.click("#open-settings");
    await page.locator("#voice option[value=amy]").waitFor({ state: "attached" });
    await page.selectOption("#voice", "amy");
    await page.fill("#instructions", "Speak like a pirate.");
    await page.click("#settings .primary");
    await say(page, "Hello");
    expect(engine.requests.at(-1)).toMatchObject({ voice: "amy", instructions: "Speak like a pirate." });
    // While a call runs, too; and for the next visit.
    await page.click("#open-settings");
    await page.fill("#instructions", "Speak like a judge.");
    await page.click("#settings .primary");
    await page.keyboard.press("Escape");
    await phase(page, "listening");
    await say(page, "Again");
    expect(engine.requests.at(-1)).toMatchObject({ voice: "amy", instructions: "Speak like a judge." });
    await page.reload();
    await page.click("#open-settings");
    expect(await page.inputValue("#instructions")).toBe("Speak like a judge.");
    expect(await page.inputValue("#voice")).toBe("amy");
  });

  it("takes what is chosen while the call is being opened", async () => {
    // Settings that were closed between the click and the session were kept for the next call, and this one never knew.
    const page = await openPage({ transport: "webrtc" });
    let goOn = (): void => {};
    const chosen = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await page.route("**/v1/realtime/calls", async (route) => {
      await chosen;
      await route.continue();
    });
    const offered = page.waitForRequest("**/v1/realtime/calls");
    await page.click("#talk");
    await offered;
    await page.click("#open-settings");
    await page.fill("#instructions", "Speak like a queen.");
    await page.click("#settings .primary");
    goOn();
    await phase(page, "listening");
    await say(page, "Hello");
    expect(engine.requests.at(-1)).toMatchObject({ instructions: "Speak like a queen." });
  });

  transports("tells the latency of each turn, the newest first: over %s", async (transport) => {
    const page = await openPage({ transport });
    await page.click("#toggle-details");
    for (const turn of ["1", "2", "3"]) {
      await say(page, `Turn ${turn}`);
      const rows = page.locator("#latency tr");
      expect(await rows.count()).toBe(Number(turn));
      const [heading] = await rows.first().locator("th").allInnerTexts();
      expect(heading).toBe(turn);
      // Typed text has no transcript.
      const [transcript, ...rest] = await rows.first().locator("td").allInnerTexts();
      expect(transcript).toBe("–");
      expect(rest).toHaveLength(2);
      for (const ms of rest) expect(ms).toMatch(/^\d+$/);
      await page.keyboard.press("Escape");
      await phase(page, "listening");
    }
    expect(await page.locator("#connect-time").textContent()).toMatch(/: \d+ ms/);
  });

  transports(
    "talks while a finger is on the button, and says so to a finger that slipped: over %s",
    async (transport) => {
      const page = await openPage(
        { transport, turns: "push" },
        { hasTouch: true, viewport: { width: 375, height: 667 } },
      );
      await page.tap("#talk");
      await page.waitForSelector("#hold:not([hidden])");
      const session = await page.context().newCDPSession(page);
      const { x, y, width, height } = (await page.locator("#hold").boundingBox())!;
      const touch = (type: "touchStart" | "touchEnd", points: { x: number; y: number }[]): Promise<unknown> =>
        session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
      const finger = { x: x + width / 2, y: y + height / 2 };
      const asked = engine.requests.length;
      await touch("touchStart", [finger]);
      await touch("touchEnd", []);
      await page.waitForFunction(() => document.getElementById("phase").textContent === "Hold while you speak");
      expect(engine.requests).toHaveLength(asked);
      await touch("touchStart", [finger]);
      await page.waitForFunction(() => document.getElementById("phase").textContent === "Hearing you");
      await page.waitForTimeout(LONGER_THAN_A_SLIP_MS);
      await touch("touchEnd", []);
      await phase(page, "speaking");
      expect(await page.locator("#captions .you p").first().textContent()).toBe(TRANSCRIPT);
      // Whoever holds the button while it speaks interrupts it.
      await touch("touchStart", [finger]);
      await page.waitForSelector("#captions s");
      await touch("touchEnd", []);
    },
  );

  it("talks while Enter is held on the button", async () => {
    const page = await openPage({ turns: "push" });
    await page.click("#talk");
    await page.waitForSelector("#hold:not([hidden])");
    await page.focus("#hold");
    await page.keyboard.down("Enter");
    expect(await page.locator("#phase").textContent()).toBe("Hearing you");
    await page.waitForTimeout(LONGER_THAN_A_SLIP_MS);
    await page.keyboard.up("Enter");
    await phase(page, "speaking");
  });

  it("gets back a call over WebRTC that the server dropped, with what was said in it", async () => {
    const page = await openPage({ transport: "webrtc" });
    const calls: string[] = [];
    page.on("response", (response) => {
      const location = response.headers()["location"];
      if (location !== undefined) calls.push(location);
    });
    await say(page, "Remember seven");
    await fetch(`${server.url}${calls[0]}/hangup`, { method: "POST" });
    await page.waitForSelector("#problem:not([hidden])");
    expect(await page.locator("#problem-title").textContent()).toBe("The connection was lost");
    await phase(page, "listening");
    expect(calls).toHaveLength(2);
    await say(page, "Which number?");
    const words = engine.requests.at(-1)?.items.map((item) => JSON.stringify(item));
    expect(words?.join()).toContain("Remember seven");
  });
});
