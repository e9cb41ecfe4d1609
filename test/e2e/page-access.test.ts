import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axeCore from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import { TRANSCRIPT, talkingServer } from "../support/talking-server.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, window: any, localStorage: any, MutationObserver: any, axe: any;

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

describe.skipIf(!hasChromium)("the talk page for eyes, ears and hands of every kind", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-access-"));
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
    const microphone = join(directory, "microphone.wav");
    const question = "test/fixtures/questions/capital.wav";
    await writeMicrophone(microphone, [0.8, question, 3.5, question, 30]);
    browser = await openBrowser(microphone);
    ({ server } = await talkingServer());
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  async function openPage(look: object = {}, settings: object = {}): Promise<Page> {
    const context = await browser.newContext({ permissions: ["microphone"], reducedMotion: "reduce", ...look });
    context.setDefaultTimeout(90_000);
    const page = await context.newPage();
    await page.addInitScript((stored) => localStorage.setItem("antiphon.settings", stored), JSON.stringify(settings));
    await page.goto(server.url);
    return page;
  }
  const phase = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.dataset.phase === wanted, name);
  /** What axe finds wrong: contrast, names, roles, sizes of targets, and so on. */
  async function violations(page: Page): Promise<string[]> {
    // What has just come is seen in full a frame later.
    await page.waitForFunction(() =>
      document.getAnimations().every((one: { playState: string }) => one.playState !== "running"),
    );
    await page.evaluate(axeCore.source);
    return page.evaluate(async (rules) => {
      const result = await axe.run({ runOnly: rules });
      return result.violations.flatMap((rule: { id: string; nodes: { target: string[] }[] }) =>
        rule.nodes.map(({ target }) => `${rule.id}: ${target.join(" ")}`),
      );
    }, RULES);
  }
  const focused = (page: Page): Promise<string> =>
    page.evaluate(() => {
      const { id, tagName, textContent } = document.activeElement;
      return id || `${tagName.toLowerCase()} ${textContent.trim()}`.trim();
    });

  it.each(["light", "dark"])("has no fault that axe finds, in %s colours, in any state", async (colorScheme) => {
    const page = await openPage({ colorScheme });
    const faults: Record<string, string[]> = {};
    faults["idle"] = await violations(page);
    await page.click("#open-settings");
    faults["settings"] = await violations(page);
    await page.keyboard.press("Escape");
    await page.click("#toggle-details");
    await page.click("#talk");
    await phase(page, "speaking");
    faults["speaking"] = await violations(page);
    await page.waitForSelector("#captions s");
    await page.click("#mute");
    await page.locator("#events summary").first().click();
    faults["interrupted, muted"] = await violations(page);
    await page.click("#talk");
    await page.route("**/v1/realtime/calls", (route) => route.abort());
    await page.click("#talk");
    await page.waitForSelector("#problem:not([hidden])");
    faults["problem"] = await violations(page);
    expect(Object.entries(faults).filter(([, found]) => found.length > 0)).toEqual([]);
    await page.context().close();
  });

  it.each(["light", "dark"])(
    "draws the edges of controls with a contrast of 3:1 at least, in %s colours",
    async (colorScheme) => {
      const page = await openPage({ colorScheme });
      const ratios = await page.evaluate(() => {
        const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const root = window.getComputedStyle(document.documentElement);
        const luminance = (name: string): number => {
          context.fillStyle = root.getPropertyValue(name);
          context.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
            const x = value / 255;
            return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
          }) as [number, number, number];
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const all: Record<string, number> = {};
        for (const ink of ["--edge", "--focus", "--accent", "--voice", "--think", "--danger"]) {
          for (const ground of ["--paper", "--surface"]) {
            const [a, b] = [luminance(ink), luminance(ground)];
            all[`${ink} on ${ground}`] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          }
        }
        return all;
      });
      expect(Object.keys(ratios)).toHaveLength(12);
      expect(Object.entries(ratios).filter(([, ratio]) => !(ratio >= 3))).toEqual([]);
      await page.context().close();
    },
  );

  it("is walked through by Tab, each stop in sight, and worked by Enter and Space", async () => {
    const page = await openPage();
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("a Skip to the talk button");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    const stops: string[] = [];
    for (let stop = 0; stop < 6; stop++) {
      stops.push(await focused(page));
      const isSeen = await page.evaluate(() => {
        const focus = document.activeElement;
        const marked = focus.matches("#message") ? focus.form : focus;
        const { outlineStyle, boxShadow } = window.getComputedStyle(marked);
        return focus === document.body || outlineStyle !== "none" || boxShadow !== "none";
      });
      expect(isSeen, stops.at(-1)).toBe(true);
      await page.keyboard.press("Tab");
    }
    expect(stops.join()).toContain("message,button");
    await page.focus("#toggle-details");
    await page.keyboard.press("Enter");
    expect(await page.locator("#details").isVisible()).toBe(true);
    await page.keyboard.press("Space");
    expect(await page.locator("#details").isVisible()).toBe(false);
    await page.focus("#open-settings");
    await page.keyboard.press("Space");
    expect(await focused(page)).toBe("voice");
    await page.keyboard.press("Escape");
    expect(await focused(page)).toBe("open-settings");
    await page.focus("#talk");
    await page.keyboard.press("Space");
    await phase(page, "listening");
    await page.keyboard.press("Enter");
    await phase(page, "idle");
    expect(await focused(page)).toBe("talk");
    await page.context().close();
  });

  it("tells a screen reader each state, and each caption once and whole", async () => {
    const page = await openPage({}, { transport: "websocket" });
    const told = page.evaluate(
      () =>
        new Promise<string[]>((resolve) => {
          const announcements: string[] = [];
          new MutationObserver((records: { addedNodes: { textContent: string }[] }[]) => {
            for (const { addedNodes } of records) for (const node of addedNodes) announcements.push(node.textContent);
            if (announcements.length >= 2) resolve(announcements);
          }).observe(document.getElementById("announcer"), { childList: true, characterData: true, subtree: true });
        }),
    );
    await page.click("#talk");
    const announcements = await told;
    expect(announcements[0]).toBe(`You: ${TRANSCRIPT}`);
    expect(announcements[1]).toMatch(/^Antiphon: word0 .*word29$/);
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    const seen = nodes.filter(({ ignored }) => !ignored);
    const live = (role: string) =>
      seen.find((node) => node.role?.value === role)?.properties?.find(({ name }) => name === "live")?.value.value;
    expect([live("status"), live("log")]).toEqual(["polite", "polite"]);
    const controls = seen.filter(({ role }) =>
      /^(button|link|textbox|searchbox|meter|combobox|radio)$/.test(role?.value),
    );
    const names = controls.map(({ name }) => String(name?.value ?? ""));
    expect(names).toEqual(
      expect.arrayContaining(["End the call", "Mute", "Stop", "Message", "Send", "Microphone level"]),
    );
    expect(names).not.toContain("");
    await page.context().close();
  });

  it("shows its welcome, and in the settings whatever has the focus", async () => {
    // The empty list of captions was as tall as the page, which follows what is new: the welcome was out of sight above it.
    // The key's field was under the button of the dialog.
    const page = await openPage({ viewport: { width: 375, height: 667 } });
    const isUncovered = (selector: string): Promise<boolean> =>
      page.locator(selector).evaluate((target) => {
        const { x, y, width, height } = target.getBoundingClientRect();
        return [y + 2, y + height - 2].every((at) => document.elementFromPoint(x + width / 2, at) === target);
      });
    expect(await isUncovered(".lead")).toBe(true);
    await page.click("#open-settings");
    await page.focus("#key");
    expect(await isUncovered("#key")).toBe(true);
    await page.context().close();
  });

  it("holds still for those who asked for it", async () => {
    const page = await openPage();
    await page.click("#talk");
    await phase(page, "speaking");
    const moving = await page.evaluate(
      () => document.getAnimations().filter((one: { playState: string }) => one.playState === "running").length,
    );
    expect(moving).toBe(0);
    await page.context().close();
  });

  it.each([320, 375, 1280])("fits a width of %i, whatever it shows", async (width) => {
    const page = await openPage({ viewport: { width, height: 720 } }, { transport: "websocket" });
    await page.click("#talk");
    await phase(page, "speaking");
    const overflow = (): Promise<number> =>
      page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(await overflow()).toBe(0);
    const details = await page.locator("#toggle-details").boundingBox();
    expect((details?.x ?? 0) + (details?.width ?? 0)).toBeLessThanOrEqual(width);
    await page.click("#toggle-details");
    expect(await overflow()).toBe(0);
    // Nor is anything cut off at the edge of a part that scrolls by itself.
    for (const part of ["#latency", "#copy-events", "#events"]) {
      const box = await page.locator(part).boundingBox();
      expect((box?.x ?? 0) + (box?.width ?? width), part).toBeLessThanOrEqual(width);
    }
    const send = await page.locator("#compose button").boundingBox();
    expect((send?.x ?? 0) + (send?.width ?? 0)).toBeLessThanOrEqual(width);
    // With another machine's wider letters the header stuck out by 4 px. WCAG 1.4.12 names the spacing that must fit.
    const content = "* { letter-spacing: 0.12em !important; word-spacing: 0.16em !important }";
    await page.evaluate((rule) => {
      const sheet = new window.CSSStyleSheet();
      sheet.replaceSync(rule);
      document.adoptedStyleSheets = [sheet];
    }, content);
    expect(await overflow()).toBe(0);
    await page.click("#toggle-details");
    expect(await overflow()).toBe(0);
    await page.context().close();
  });
});
