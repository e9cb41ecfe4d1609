"""OpenAI's Python client, used as its documentation shows: a function call in text, and push to talk."""

import asyncio
import base64
import json
import os
import sys
import wave

from openai import AsyncOpenAI

TOOL = {
    "type": "function",
    "name": "lookup",
    "description": "Looks up the capital of a country.",
    "parameters": {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]},
}


async def tools(connection):
    await connection.session.update(
        session={"type": "realtime", "output_modalities": ["text"], "tools": [TOOL], "tool_choice": "auto"}
    )
    content = [{"type": "input_text", "text": "What is the capital of France?"}]
    await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
    await connection.response.create()
    called, text = [], ""
    async for event in connection:
        if event.type == "response.output_text.delta":
            text += event.delta
        elif event.type == "response.function_call_arguments.done":
            called.append([event.name, json.loads(event.arguments)])
            output = {"type": "function_call_output", "call_id": event.call_id, "output": "Paris"}
            # In one go, within the handler, while the response that called still runs.
            await connection.conversation.item.create(item=output)
            await connection.response.create()
        elif event.type == "error":
            sys.exit(event.error.message)
        elif event.type == "response.done" and event.response.output[-1].type == "message":
            return {"called": called, "text": text, "usage": event.response.usage.total_tokens}


async def push_to_talk(connection):
    with wave.open(sys.argv[2]) as question:
        rate = question.getframerate()
        audio = question.readframes(question.getnframes())
    audio_input = {"format": {"type": "audio/pcm", "rate": rate}, "turn_detection": None}
    await connection.session.update(session={"type": "realtime", "audio": {"input": audio_input}})
    await connection.input_audio_buffer.append(audio=base64.b64encode(audio).decode())
    await connection.input_audio_buffer.commit()
    await connection.response.create()
    heard, said, spoken = "", "", b""
    async for event in connection:
        if event.type == "conversation.item.input_audio_transcription.completed":
            heard = event.transcript
        elif event.type == "response.output_audio.delta":
            spoken += base64.b64decode(event.delta)
        elif event.type == "response.output_audio_transcript.done":
            said = event.transcript
        elif event.type == "error":
            sys.exit(event.error.message)
        elif event.type == "response.done":
            return {"heard": heard, "said": said, "bytes": len(spoken)}


async def transcription(connection):
    with wave.open(sys.argv[2]) as question:
        rate = question.getframerate()
        audio = question.readframes(question.getnframes()) + bytes(4 * rate)
    audio_input = {
        "format": {"type": "audio/pcm", "rate": rate},
        "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
    }
    await connection.session.update(session={"type": "transcription", "audio": {"input": audio_input}})
    for at in range(0, len(audio), rate // 5):
        await connection.input_audio_buffer.append(audio=base64.b64encode(audio[at : at + rate // 5]).decode())
    deltas, types = [], []
    async for event in connection:
        types.append(event.type)
        if event.type == "conversation.item.input_audio_transcription.delta":
            deltas.append(event.delta)
        elif event.type == "conversation.item.input_audio_transcription.completed":
            return {"deltas": deltas, "transcript": event.transcript, "types": types}
        elif event.type == "error":
            sys.exit(event.error.message)


async def main():
    client = AsyncOpenAI(api_key="any", websocket_base_url=os.environ["ANTIPHON_WS"])
    scenario = {"tools": tools, "push-to-talk": push_to_talk, "transcription": transcription}[sys.argv[1]]
    is_transcription = sys.argv[1] == "transcription"
    model = "gpt-4o-transcribe" if is_transcription else "gpt-realtime"
    query = {"intent": "transcription"} if is_transcription else {}
    async with client.realtime.connect(model=model, extra_query=query) as connection:
        print(json.dumps(await scenario(connection)))


asyncio.run(main())
