import { describe, expect, test } from "vitest";
import { help, parseArguments } from "../../src/cli/arguments.ts";
import { configOptions, ENV_PREFIX } from "../../src/config.ts";
import { flagOf, rows } from "../../src/util/options.ts";

const options = configOptions({});

describe("flags", () => {
  test("a value after a space or an equals sign; booleans on, off and explicit", () => {
    expect(parseArguments(["--port", "1", "--host=h", "--offline"], options).flags).toEqual({
      port: "1",
      host: "h",
      offline: true,
    });
    expect(parseArguments(["--no-offline"], options).flags).toEqual({ offline: false });
    expect(parseArguments(["--offline=false"], options).flags).toEqual({ offline: "false" });
  });
  test("words are positionals, and so is all that follows --", () => {
    expect(parseArguments(["pull", "--port", "1", "--", "--port"], options).positionals).toEqual(["pull", "--port"]);
  });
  test.each([
    [["--prot", "1"], "Did you mean --port?"],
    [["--max-sesions=1"], "Did you mean --max-sessions?"],
    [["-p", "1"], "unknown option -p"],
    [["--host"], "--host needs a value: --host HOST"],
    [["--host", "--port", "1"], "--host needs a value"],
    [["--no-host"], "unknown option --no-host"],
  ])("%j is refused", (argv, expected) => {
    expect(() => parseArguments(argv, options)).toThrow(expected);
  });
});

describe("help", () => {
  const text = help(options, { usage: "antiphon serve [options]", summary: "Serves.", envPrefix: ENV_PREFIX });
  test("shows every option with its default and its variable", () => {
    for (const [key, option] of rows(options)) {
      expect(text).toContain(`--${flagOf(key)}`);
      expect(text).toContain(option.description);
    }
    expect(text).toContain("[default: 8765; ANTIPHON_PORT]");
    expect(text).toContain("[default: none; ANTIPHON_LLM_API_KEY or OPENAI_API_KEY]");
  });
  test("shows the default of each option, never another's", () => {
    const defaults = text.match(/\[default: /g) ?? [];
    expect(defaults).toHaveLength(rows(options).length);
  });
});
