import { join } from "node:path";
import { download } from "../download.ts";
import type { HttpsSource } from "../model.ts";
import { partialName } from "./hub.ts";
import type { SourceContext } from "./source.ts";

/** Takes files from their addresses. */
export async function fetchHttps(source: HttpsSource, context: SourceContext): Promise<void> {
  for (const { from, to, bytes, sha256 } of source.files) {
    await download(
      {
        url: from,
        item: decodeURIComponent(new URL(from).pathname.split("/").at(-1) || from),
        target: join(context.directory, to),
        partial: join(context.partial, partialName(from, sha256 ?? "")),
        bytes: bytes ?? null,
        digest: sha256 === undefined ? null : { kind: "sha256", hex: sha256 },
        tokenSent: null,
      },
      context,
    );
  }
}
