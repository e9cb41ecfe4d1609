/** What the tests of this folder share: a store in a fresh folder, a clock that does not wait, and what lies there. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CatalogModel, Source } from "../../src/models/model.ts";
import { ModelStore, type ModelStoreOptions } from "../../src/models/store.ts";
import type { Clock } from "../../src/util/clock.ts";
import { systemClock } from "../../src/util/clock.ts";

/** Passes every wait at once and notes how long it would have been; timeouts of 30 s and the like never fire. */
export class EagerClock implements Clock {
  readonly waitsMs: number[] = [];
  nowMs(): number {
    return systemClock.nowMs();
  }
  unixSeconds(): number {
    return systemClock.unixSeconds();
  }
  schedule(delayMs: number, run: () => void): () => void {
    if (delayMs === 30_000 || delayMs === 5_000) return () => {};
    if (delayMs > 250) this.waitsMs.push(delayMs);
    // Polls of a lock and of a client's folder wait in earnest: what they look at takes real time.
    const timer = setTimeout(run, delayMs > 250 ? 0 : 20);
    return () => clearTimeout(timer);
  }
}

export class Room implements Disposable {
  readonly directory: string = mkdtempSync(join(tmpdir(), "antiphon-models-"));
  readonly cacheDir: string = join(this.directory, "cache");
  readonly clock: EagerClock = new EagerClock();

  store(catalog: readonly CatalogModel[], options: Partial<ModelStoreOptions> = {}): ModelStore {
    return new ModelStore({
      cacheDir: this.cacheDir,
      offline: false,
      hfToken: null,
      hfEndpoint: "http://127.0.0.1:9",
      clock: this.clock,
      catalog,
      ...options,
    });
  }
  /** Every file under the cache, lock files included. */
  files(): string[] {
    try {
      const entries = readdirSync(this.cacheDir, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => !entry.isDirectory());
      return files.map((entry) => join(entry.parentPath, entry.name).slice(this.cacheDir.length + 1)).sort();
    } catch {
      return [];
    }
  }
  /** Files that neither belong to a publication nor are kept to go on from. */
  leftovers(): string[] {
    const published = this.files().filter((file) => file.endsWith("/.antiphon.json"));
    const roots = published.map((file) => file.slice(0, -".antiphon.json".length));
    return this.files().filter(
      (file) =>
        !file.includes("/partial/") && !file.endsWith("revisions.json") && !roots.some((root) => file.startsWith(root)),
    );
  }
  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function testModel(
  name: string,
  assets: readonly (readonly Source[])[],
  roles: Record<string, string>,
): CatalogModel {
  return { name, part: "llm", description: "for tests", licence: "MIT", bytes: 1, roles, assets };
}
