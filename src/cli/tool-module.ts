/** The user's own functions, called by the model and run here on the client's side. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { AppError } from "../errors.ts";

/** What `--tools module.mjs` exports, as its default or as `tools`: a list of these. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Its result goes to the model: text as it is, anything else as JSON. */
  readonly run: (args: unknown) => unknown;
}

const toolSchema = z.object({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected 1 to 64 letters, digits, _ or -"),
  description: z.string().default(""),
  parameters: z.record(z.string(), z.unknown()).default({ type: "object", properties: {} }),
  run: z.custom<ClientTool["run"]>((value) => typeof value === "function", "expected a function"),
});

/** @throws {AppError} usage if the module cannot be loaded or does not export a list of tools. */
export async function loadTools(file: string): Promise<readonly ClientTool[]> {
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  } catch (error) {
    throw new AppError("usage", `--tools ${file} cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
  const parsed = z
    .array(toolSchema)
    .min(1)
    .safeParse(module["tools"] ?? module["default"]);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`.trim()).join("; ");
  throw new AppError(
    "usage",
    `--tools ${file}: ${problems}. Export tools = [{ name, description, parameters, run(args) }, ...].`,
  );
}

/** What the model is told. A tool that fails is the model's to deal with, in the tool's own words. */
export async function runTool(tools: readonly ClientTool[], name: string, argumentsJson: string): Promise<string> {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) return JSON.stringify({ error: `there is no tool ${name}` });
  try {
    const result = await tool.run(JSON.parse(argumentsJson === "" ? "{}" : argumentsJson));
    return typeof result === "string" ? result : JSON.stringify(result ?? null);
  } catch (error) {
    return JSON.stringify({ error: (error as Error).message });
  }
}
