import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bytesOf, HubServer } from "./hub-server.ts";
import { Room } from "./room.ts";

const WEIGHTS = bytesOf(500_000);
const PULL = fileURLToPath(new URL("./pull-process.ts", import.meta.url));

let hub: HubServer;
let room: Room;
const children: ChildProcess[] = [];

beforeEach(async () => {
  room = new Room();
  hub = await HubServer.start("owner/model", { weights: WEIGHTS });
});

afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
  await hub[Symbol.asyncDispose]();
  room[Symbol.dispose]();
});

class Pull {
  readonly child: ChildProcess;
  output = "";
  readonly #ended: Promise<unknown>;
  readonly #watchers: (() => void)[] = [];
  constructor() {
    this.child = spawn(process.execPath, ["--import", "tsx", PULL, hub.endpoint, room.cacheDir], { stdio: "pipe" });
    children.push(this.child);
    this.#ended = once(this.child, "close");
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
        for (const watch of this.#watchers) watch();
      });
    }
  }
  async says(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (this.output.includes(text)) resolve();
      };
      this.#watchers.push(look);
      look();
      void this.#ended.then(() => reject(new Error(`ended without "${text}": ${this.output}`)));
    });
  }
  async published(): Promise<Buffer> {
    await this.#ended;
    const path = /^done (.*)$/m.exec(this.output)?.[1];
    if (path === undefined) throw new Error(this.output);
    return readFileSync(path);
  }
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#ended;
  }
}

test("two processes that pull at once fetch the file once, and both get it", async () => {
  hub.fail("weights", { kind: "hang", afterBytes: 200_000 });
  const first = new Pull();
  await first.says("bytes 200000");
  const second = new Pull();
  await second.says("waiting");
  expect(hub.bodies("weights")).toHaveLength(1);
  hub.dropBodies();
  expect(await first.published()).toEqual(WEIGHTS);
  expect(await second.published()).toEqual(WEIGHTS);
  expect(hub.bodies("weights").map(({ range }) => range)).toEqual([null, "bytes=200000-"]);
  expect(room.leftovers()).toEqual([]);
});

test("after a kill -9 in the middle, nothing is published, and the next pull goes on at once", async () => {
  hub.fail("weights", { kind: "hang", afterBytes: 300_000 });
  const first = new Pull();
  await first.says("bytes 300000");
  await first.kill();
  expect(room.files().filter((file) => file.endsWith(".antiphon.json"))).toEqual([]);

  const second = new Pull();
  expect(await second.published()).toEqual(WEIGHTS);
  expect(second.output).toMatch(/^started 300000$/m);
  expect(second.output).not.toContain("waiting");
  expect(hub.bodies("weights").at(-1)?.range).toBe("bytes=300000-");
  expect(room.leftovers()).toEqual([]);
});

test("one that waited takes over when the other is killed", async () => {
  hub.fail("weights", { kind: "hang", afterBytes: 100_000 });
  const first = new Pull();
  await first.says("bytes 100000");
  const second = new Pull();
  await second.says("waiting");
  await first.kill();
  expect(await second.published()).toEqual(WEIGHTS);
  expect(room.leftovers()).toEqual([]);
});
