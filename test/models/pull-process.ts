/** Run as a child: pulls the model "toy" from the hub at argv[2] into the cache at argv[3]. Prints each event's kind. */
import { ModelStore } from "../../src/models/store.ts";

const [endpoint, cacheDir] = process.argv.slice(2);
const source = {
  kind: "hf",
  repository: "owner/model",
  revision: "main",
  files: [{ from: "weights", to: "w" }],
} as const;
const store = new ModelStore({
  cacheDir: cacheDir!,
  offline: false,
  hfToken: null,
  hfEndpoint: endpoint!,
  catalog: [
    { name: "toy", part: "llm", description: "", licence: "MIT", bytes: 1, roles: { model: "w" }, assets: [[source]] },
  ],
});
const files = await store.ensure("toy", {
  onProgress: (progress) => {
    process.stdout.write(`${progress.kind} ${"doneBytes" in progress ? progress.doneBytes : ""}\n`);
  },
});
process.stdout.write(`done ${files.file("model")}\n`);
