/** Where the checkpoint lies that people name: in a directory, or on the hub, from where it is fetched. */
import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { CheckpointError } from "../../errors.ts";
import { isRepositoryId, type RepositoryOptions } from "../../models/repository.ts";
import type { ModelStore } from "../../models/store.ts";
import type { VoiceChatConfig } from "./config.ts";
import { readConfig } from "./config-schema.ts";

export interface CheckpointPlace {
  readonly directory: string;
  /** The last part of what it was called by. */
  readonly name: string;
  readonly config: VoiceChatConfig;
}

/** What a hub repository must give. */
const CHECKPOINT_FILES = ["*.json", "*.safetensors"];

/**
 * Looks at `model` as far as that takes no network and no time: a directory is read up to its weights.
 * @throws {CheckpointError} where it is neither a sound checkpoint nor a hub id.
 */
export function requireCheckpoint(model: string): void {
  if (existsSync(model)) configOf(model);
  else if (!isRepositoryId(model)) {
    const message = `there is no directory ${model}, and it is no hub id (OWNER/NAME)`;
    throw new CheckpointError("checkpoint_unreadable", message);
  }
}

/** Fetches a hub repository that is not here yet. @throws {CheckpointError | DownloadError} */
export async function findCheckpoint(
  model: string,
  store: ModelStore,
  options: Pick<RepositoryOptions, "signal" | "onProgress">,
): Promise<CheckpointPlace> {
  requireCheckpoint(model);
  const directory = existsSync(model)
    ? resolve(model)
    : (await store.ensureRepository(model, { ...options, include: CHECKPOINT_FILES })).directory;
  return { directory, name: basename(resolve(model)), config: configOf(directory) };
}

/** The config of a checkpoint whose files are all there. */
function configOf(directory: string): VoiceChatConfig {
  Checkpoint.open(directory).close();
  return readConfig(directory);
}
