import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["./test/support/live-server.setup.ts"],
    reporters: [process.env["CI"] === "true" ? "default" : "dot", "./test/support/count-reporter.ts"],
    // Two cores, and several files load models: more workers only take turns.
    maxWorkers: 2,
    // Ends a hang; how long a test takes on a busy machine says nothing.
    testTimeout: 300_000,
    // Browsers, peers and models in real time share two cores here; what fails twice more is no accident.
    retry: process.env["CI"] === "true" ? 2 : 0,
    hookTimeout: 300_000,
  },
});

export default config;
