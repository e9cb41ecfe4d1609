/** The options of every command that talks to a server. */
import { OptionGroup, type OptionTable } from "../util/options.ts";

export interface ServerSettings {
  readonly apiKey: string | null;
  readonly tlsCa: string | null;
}

export const server: OptionGroup = new OptionGroup("Server");

/** `keyEnv`: where the key may come from besides its flag. */
export const serverOptions = (keyEnv: readonly string[]): OptionTable<ServerSettings> => ({
  apiKey: server.maybeText("Key of the server.", { placeholder: "KEY", secret: true, env: keyEnv }),
  tlsCa: server.maybeText("Certificate to trust (PEM); the one that this machine's own server made is trusted.", {
    placeholder: "FILE",
    env: [],
  }),
});
