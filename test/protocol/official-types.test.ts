import type { ConversationItem, RealtimeResponse, RealtimeServerEvent } from "openai/resources/realtime/realtime";
import { expectTypeOf, it } from "vitest";
import type { ServerEvent, WireItem, WireResponse } from "../../src/protocol/openai/server-events.ts";

it("sends only events that the official client's types accept", () => {
  expectTypeOf<ServerEvent>().toExtend<RealtimeServerEvent>();
  expectTypeOf<WireItem>().toExtend<ConversationItem>();
  expectTypeOf<WireResponse>().toExtend<RealtimeResponse>();
});
