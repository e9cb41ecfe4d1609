/**
 * From a clone to a running program, in plain Node: installs and builds what is missing, then runs it.
 *
 *     node tools/bootstrap.mjs COMMAND [ARGUMENT...]     antiphon COMMAND, after set-up (npm start, npm run antiphon)
 *     node tools/bootstrap.mjs --dev test [FILTER...]    set-up, lint, type check, test models, tests (npm test)
 *
 * What is done already is not done again. What it says goes to standard error.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** What the tests talk to; fetched before them, with progress, so that no test waits for a download. */
const TEST_MODELS = ["silero-vad", "smart-turn", "moonshine-tiny-en", "smollm2-135m", "piper-joe", "flite"];

const say = (text) => process.stderr.write(`${text}\n`);

/** Ends the process with the status of a step that failed. */
function run(command, args, options = {}) {
  const windows = process.platform === "win32";
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: windows, ...options });
  if (result.error !== undefined) {
    say(`antiphon: cannot run ${command}: ${result.error.message}`);
    process.exit(1);
  }
  return result.status ?? 1;
}

function must(what, command, args) {
  const status = run(command, args);
  if (status === 0) return;
  say(`antiphon: ${what} failed (${command} ${args.join(" ")}).`);
  process.exit(status);
}

/** True if every package of the lock file that this machine can use is there in the locked version. */
function installed() {
  const hidden = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(hidden)) return false;
  const want = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const have = JSON.parse(readFileSync(hidden, "utf8")).packages;
  return Object.entries(want).every(
    ([path, { version, optional, peer, link }]) =>
      path === "" || link || have[path]?.version === version || ((optional || peer) && have[path] === undefined),
  );
}

function* files(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "dist") yield* files(path);
    } else yield path;
  }
}

/** Changes when any source of the build does. */
function sourceStamp() {
  const hash = createHash("sha256");
  const sources = [...files(join(root, "src")), ...files(join(root, "web"))];
  for (const name of ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"]) {
    sources.push(join(root, name));
  }
  for (const path of sources.sort()) {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

/** Says what is missing before npm and the parser say it worse. */
function requireNode() {
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const wanted = engines.node.replace(">=", "");
  const isOlder = wanted.localeCompare(process.versions.node, "en", { numeric: true }) > 0;
  if (!isOlder) return;
  say(`antiphon needs Node.js ${wanted} or newer, and this is ${process.versions.node}: see https://nodejs.org`);
  process.exit(1);
}

function setUp() {
  requireNode();
  if (!installed()) {
    say("antiphon: installing packages (once; about 800 MB with the model runtimes)…");
    must("the installation", "npm", ["ci"]);
  }
  const stampFile = join(root, "dist", ".stamp");
  const stamp = sourceStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  say("antiphon: building…");
  must("the build", "npm", ["run", "--silent", "build"]);
  mkdirSync(join(root, "dist"), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/** The last line printed is `N passed, N failed, N skipped`, whatever happens before the tests. */
function test(filters) {
  const main = join(root, "dist", "main.js");
  for (const [what, command, args] of [
    ["lint and type check", "npm", ["run", "--silent", "check"]],
    ["test models", process.execPath, [main, "models", "pull", ...TEST_MODELS]],
  ]) {
    say(`antiphon: ${what}…`);
    const status = run(command, args);
    if (status !== 0) {
      say(`antiphon: ${what} failed.`);
      process.stdout.write("0 passed, 1 failed, 0 skipped\n");
      return status;
    }
  }
  return run("npx", ["--no-install", "vitest", "run", ...filters]);
}

const args = process.argv.slice(2);
const development = args[0] === "--dev";
if (development) args.shift();
setUp();
if (development && args[0] === "test") process.exit(test(args.slice(1)));
else {
  const main = join(root, "dist", "main.js");
  process.argv = [process.argv[0], main, ...args];
  await import(pathToFileURL(main).href);
}
