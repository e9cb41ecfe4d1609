/** The talk page at `/`, and what it asks besides the sessions. Files are known by name: nothing else can be read. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type RouteGroup, route } from "./routes.ts";

/** From `src/server` and from `dist/server` alike. */
const WEB_DIRECTORY: string = fileURLToPath(new URL("../../web", import.meta.url));

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

const HEADERS = {
  // The page loads nothing from anywhere else. Sessions may be on another port of this host.
  "Content-Security-Policy":
    "default-src 'self'; connect-src 'self' ws: wss:; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  "Permissions-Policy": "microphone=(self)",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  // Asked again each time, and answered with 304 unless the server was updated.
  "Cache-Control": "no-cache",
};

interface PageFile {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly etag: string;
}

/** `/`, its scripts and styles, `GET /v1/capabilities` and `GET /v1/voices`. */
export function pageRoutes(directory: string = WEB_DIRECTORY): RouteGroup {
  const files = new Map([...readFiles(directory, ""), ...readFiles(directory, "dist/")]);
  const index = files.get("/index.html");
  if (index !== undefined) files.set("/", index);
  return (app, { readiness }) => {
    for (const [path, { body, mediaType, etag }] of files) {
      app.get(path, (c) => {
        const headers = { ...HEADERS, "Content-Type": mediaType, ETag: etag };
        return c.req.header("If-None-Match") === etag ? c.body(null, 304, headers) : c.body(body, 200, headers);
      });
    }
    route(app, "/v1/capabilities", {
      GET: (c) => {
        const { turnTaking, acceptsText, inputHz, outputHz, voices } = readiness.engine().capabilities;
        const isDuplex = turnTaking === "model";
        return c.json({
          object: "capabilities",
          dialect: isDuplex ? "voicechat" : "openai",
          transports: isDuplex ? ["websocket"] : ["webrtc", "websocket"],
          accepts_text: acceptsText,
          input_hz: inputHz,
          output_hz: outputHz,
          voices,
        });
      },
    });
    route(app, "/v1/voices", {
      GET: (c) => {
        const { voices } = readiness.engine().capabilities;
        return c.json({ object: "list", data: voices.map((id) => ({ id, object: "voice" })) });
      },
    });
  };
}

function readFiles(directory: string, folder: string): [string, PageFile][] {
  let names: string[];
  try {
    names = readdirSync(join(directory, folder));
  } catch {
    // Not built: the server works without its page.
    return [];
  }
  return names.flatMap((name): [string, PageFile][] => {
    const mediaType = MEDIA_TYPES[extname(name)];
    if (mediaType === undefined) return [];
    const body = new Uint8Array(readFileSync(join(directory, folder, name)));
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    return [[`/${folder}${name}`, { body, mediaType, etag }]];
  });
}
