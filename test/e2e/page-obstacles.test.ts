import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import { talkingServer } from "../support/talking-server.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, navigator: any, window: any, localStorage: any, DOMException: any, Event: any;

const PREFIX = "/voice";
const KEY = "sesame";

/** What stands between the click and the call. Nothing is said here: the subject is the way in. */
describe.skipIf(!hasChromium)("what is in the way of a call from the talk page", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-obstacles-"));
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    const microphone = join(directory, "microphone.wav");
    await writeMicrophone(microphone, [30]);
    browser = await openBrowser(microphone);
    ({ server } = await talkingServer({ apiKey: KEY, apiPrefix: PREFIX }));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
    expect(faults.splice(0)).toEqual([]);
  });

  /** `prepare` runs in the page before its own scripts. */
  async function openPage(prepare: (() => void) | null = null, key = KEY): Promise<Page> {
    const context = await browser.newContext({ permissions: ["microphone"] });
    contexts.push(context);
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    if (key !== "")
      await page.addInitScript((stored) => window.sessionStorage.setItem("antiphon.settings", stored), key);
    if (prepare !== null) await page.addInitScript(prepare);
    await page.goto(`${server.url}${PREFIX}/`);
    return page;
  }
  const phase = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.dataset.phase === wanted, name);
  /** The problem that the page shows, when it does. */
  async function problem(page: Page): Promise<string | null> {
    await page.waitForSelector("#problem:not([hidden])");
    return page.locator("#problem-title").textContent();
  }
  const link = (page: Page): Promise<string | null> => page.locator("#link").textContent();

  it.each(["webrtc", "websocket"])(
    "asks for the key, says when it is wrong, and goes on with it: %s",
    async (transport) => {
      const page = await openPage(null, "");
      await page.evaluate(
        (value) => localStorage.setItem("antiphon.settings", JSON.stringify({ transport: value })),
        transport,
      );
      await page.reload();
      await page.click("#talk");
      expect(await problem(page)).toBe("The server wants an API key");
      await page.click("text=Enter the key");
      await page.keyboard.type("wrong");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.getElementById("problem-title").textContent.includes("does not take"));
      await page.click("text=Enter the key");
      await page.keyboard.press("Control+A");
      await page.keyboard.type(KEY);
      await page.keyboard.press("Enter");
      await phase(page, "listening");
      expect(await link(page)).toBe(transport === "webrtc" ? "WebRTC" : "WebSocket");
      // The key stays with the tab; the rest of the settings outlives it.
      expect(await page.evaluate(() => localStorage.getItem("antiphon.settings"))).not.toContain(KEY);
    },
  );

  it("opens when the data channel does so before the answer has been taken in", async () => {
    // The page looked at the channel only after setRemoteDescription: a channel that was faster was never seen open, and
    // the call hung until it was said not to get through.
    const page = await openPage(() => {
      const original = window.RTCPeerConnection.prototype.setRemoteDescription;
      window.RTCPeerConnection.prototype.setRemoteDescription = async function (...args: unknown[]) {
        const opened = new Promise((resolve) => {
          window.channel.addEventListener("open", resolve);
        });
        await original.apply(this, args);
        await opened;
      };
      const create = window.RTCPeerConnection.prototype.createDataChannel;
      window.RTCPeerConnection.prototype.createDataChannel = function (...args: unknown[]) {
        window.channel = create.apply(this, args);
        return window.channel;
      };
    });
    await page.click("#talk");
    await phase(page, "listening");
    expect(await link(page)).toBe("WebRTC");
  });

  it("goes over a WebSocket by itself where WebRTC is blocked, and says so", async () => {
    const page = await openPage(() => {
      const Peer = window.RTCPeerConnection;
      window.RTCPeerConnection = class extends Peer {
        async setRemoteDescription(): Promise<void> {
          Object.defineProperty(this, "connectionState", { value: "failed" });
          (this as unknown as typeof window).dispatchEvent(new Event("connectionstatechange"));
        }
      };
    });
    await page.click("#talk");
    expect(await problem(page)).toBe("The call does not get through");
    expect(await page.locator("#problem-actions").textContent()).toMatch(/^Use a WebSocket \(\d s\)/);
    await phase(page, "listening");
    expect(await link(page)).toBe("WebSocket");
    expect(await page.locator("#captions .note").textContent()).toContain("over a WebSocket");
  });

  it("waits for the user's permission, says so, and goes on when it is given", async () => {
    const page = await openPage(() => {
      navigator.permissions.query = () => Promise.resolve({ state: "prompt" });
      const original = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async (wanted: unknown) => {
        await new Promise((resolve) => {
          window.allow = resolve;
        });
        return original(wanted);
      };
    });
    let offers = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/calls")) offers += 1;
    });
    await page.click("#talk");
    await page.waitForFunction(() => document.getElementById("phase").textContent === "Allow the microphone to go on");
    expect(offers).toBe(0);
    await page.evaluate(() => window.allow());
    await phase(page, "listening");
    expect(offers).toBe(1);
  });

  it("says that the microphone is blocked, and takes text instead", async () => {
    const page = await openPage(() => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"));
    });
    await page.click("#talk");
    expect(await problem(page)).toBe("The microphone is blocked");
    await page.click("text=Type instead");
    await page.keyboard.type("Hello");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    // The call that was opened for the microphone has been given back.
    const sessions = async (): Promise<unknown> => (await fetch(`${server.url}${PREFIX}/health`)).json();
    await expect.poll(sessions, { timeout: 60_000 }).toMatchObject({ sessions: 1 });
  });

  it("gets a lost call back, with what was said in it", async () => {
    const page = await openPage(null);
    await page.evaluate(() => localStorage.setItem("antiphon.settings", JSON.stringify({ transport: "websocket" })));
    const sockets: { close(): Promise<void> }[] = [];
    const restored: string[] = [];
    await page.routeWebSocket(/realtime/, (socket) => {
      const upstream = socket.connectToServer();
      sockets.push(socket);
      socket.onMessage((message) => {
        if (sockets.length > 1 && String(message).includes("conversation.item.create")) restored.push(String(message));
        upstream.send(message);
      });
    });
    await page.reload();
    await page.fill("#message", "Remember seven");
    await page.keyboard.press("Enter");
    await phase(page, "speaking");
    await sockets[0]?.close();
    expect(await problem(page)).toBe("The connection was lost");
    await phase(page, "listening");
    expect(restored.join()).toContain("Remember seven");
    expect(await page.locator("#problem").isHidden()).toBe(true);
  });
});
