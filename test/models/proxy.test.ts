import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bytesOf, HubServer } from "./hub-server.ts";
import { Room } from "./room.ts";

let hub: HubServer;
let room: Room;
let proxy: Server;
let tunnels: string[];

beforeEach(async () => {
  room = new Room();
  hub = await HubServer.start("owner/model", { weights: bytesOf(20_000) });
  tunnels = [];
  proxy = createServer();
  proxy.on("connect", (request, client) => {
    tunnels.push(request.url ?? "");
    const target = new URL(`http://${request.url}`);
    const upstream = connect(Number(target.port), target.hostname, () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"]) vi.stubEnv(name, address);
  for (const name of ["NO_PROXY", "no_proxy"]) vi.stubEnv(name, "");
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await hub[Symbol.asyncDispose]();
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
  room[Symbol.dispose]();
});

test("the hub and the host of its large files are reached through the proxy", async () => {
  const files = await room.store([], { hfEndpoint: hub.endpoint }).ensureRepository("owner/model");
  expect(readFileSync(`${files.directory}/weights`)).toEqual(bytesOf(20_000));
  expect(new Set(tunnels).size).toBe(2);
  expect(tunnels).toContain(new URL(hub.endpoint).host);
});

test("what NO_PROXY names is reached directly", async () => {
  vi.stubEnv("NO_PROXY", "127.0.0.1");
  vi.stubEnv("no_proxy", "127.0.0.1");
  await room.store([], { hfEndpoint: hub.endpoint }).ensureRepository("owner/model");
  expect(tunnels).toEqual([]);
});
