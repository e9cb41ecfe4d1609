import { expect, test } from "vitest";
import { CATALOG, DEFAULT_MODELS } from "../../src/models/catalog.ts";

const SOURCES = CATALOG.flatMap((model) => model.assets.flat().map((source) => ({ name: model.name, source })));
/** Made by preparation, not taken from a source. */
const DERIVED = new Set(["tokens.txt"]);

test("names are unique, and fit into a path and a command line", () => {
  const names = CATALOG.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z0-9][a-z0-9.-]*$/);
});

test("the models that the engines ask for have the roles that they ask for", () => {
  const roles = Object.fromEntries(CATALOG.map((model) => [model.name, Object.keys(model.roles)]));
  expect(roles).toMatchObject({
    "silero-vad": expect.arrayContaining(["model"]),
    "smart-turn": expect.arrayContaining(["model"]),
    "moonshine-tiny-en": expect.arrayContaining(["encoder", "decoder", "tokens"]),
    "smollm2-135m": expect.arrayContaining(["model"]),
    "piper-joe": expect.arrayContaining(["model", "tokens", "dataDir"]),
    flite: expect.arrayContaining(["package"]),
    "parakeet-tdt-v2": expect.arrayContaining(["encoder", "decoder", "joiner", "tokens"]),
    kokoro: expect.arrayContaining(["model", "voices", "tokens", "dataDir"]),
  });
  for (const name of DEFAULT_MODELS) expect(Object.keys(roles)).toContain(name);
});

test("everything from a package registry has its size and digest; no digest is malformed", () => {
  for (const { name, source } of SOURCES) {
    for (const file of source.files) {
      if (source.kind === "npm" || source.kind === "pypi") {
        expect(file.bytes, name).toBeGreaterThan(0);
        expect(file.sha256, name).toBeDefined();
      }
      if (file.sha256 !== undefined) expect(file.sha256, name).toMatch(/^[0-9a-f]{64}$/);
      expect(file.from.endsWith("/"), name).toBe(file.to.endsWith("/"));
    }
  }
});

test("whichever source gives an asset, every role's file is there", () => {
  for (const model of CATALOG) {
    const first = model.assets.map((sources) => sources[0]!);
    for (const [index, sources] of model.assets.entries()) {
      for (const source of sources) {
        const files = first
          .with(index, source)
          .flatMap((chosen) => chosen.files.map(({ to }) => to.replace(/\/$/, "")));
        for (const [role, path] of Object.entries(model.roles)) {
          const there = files.includes(path) || path === "." || (model.preparation !== undefined && DERIVED.has(path));
          expect(there, `${model.name} ${role} from ${source.kind}`).toBe(true);
        }
      }
    }
  }
});
