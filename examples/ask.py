"""Asks a recorded question with OpenAI's own Python client, and keeps the spoken answer.

    pip install 'openai[realtime]'
    python examples/ask.py question.wav answer.wav

The question: a 16-bit mono WAV file at 16,000 or 24,000 Hz.
"""

import asyncio
import base64
import os
import sys
import wave

from openai import AsyncOpenAI


async def main(question_file: str, answer_file: str) -> None:
    with wave.open(question_file) as question:
        rate = question.getframerate()
        # The recording, and the silence after it that ends the turn.
        audio = question.readframes(question.getnframes()) + bytes(2 * rate)

    client = AsyncOpenAI(
        api_key=os.environ.get("OPENAI_API_KEY", "any"),
        websocket_base_url=os.environ.get("ANTIPHON_WS", "ws://127.0.0.1:8765/v1"),
    )
    answer = b""
    async with client.realtime.connect(model="gpt-realtime") as connection:
        await connection.session.update(
            session={
                "type": "realtime",
                "instructions": "Answer in one short sentence.",
                "audio": {"input": {"format": {"type": "audio/pcm", "rate": rate}}},
            }
        )
        for at in range(0, len(audio), rate // 5):
            chunk = base64.b64encode(audio[at : at + rate // 5]).decode()
            await connection.input_audio_buffer.append(audio=chunk)
        async for event in connection:
            if event.type == "conversation.item.input_audio_transcription.completed":
                print("You:", event.transcript)
            elif event.type == "response.output_audio.delta":
                answer += base64.b64decode(event.delta)
            elif event.type == "response.output_audio_transcript.done":
                print("Answer:", event.transcript)
            elif event.type == "error":
                sys.exit(event.error.message)
            elif event.type == "response.done":
                break

    with wave.open(answer_file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(24000)
        out.writeframes(answer)


asyncio.run(main(sys.argv[1], sys.argv[2]))
