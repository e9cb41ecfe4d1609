"""A call from a foreign WebRTC stack: opens, speaks, hears, interrupts by speaking again, hangs up. Prints what it saw.

Usage: python aiortc-call.py URL SPEECH.WAV    (PCM16 mono; needs aiortc)
"""
import array
import asyncio
import fractions
import json
import sys
import time
import urllib.request
import wave

from aiortc import AudioStreamTrack, RTCPeerConnection, RTCSessionDescription
from av import AudioFrame

FRAME_SECONDS = 0.02


class Microphone(AudioStreamTrack):
    """Silence, and what `say` puts in, in real time."""

    def __init__(self, hz):
        super().__init__()
        self.hz = hz
        self.samples = int(hz * FRAME_SECONDS)
        self.queue = b""
        self.sent = 0
        self.start = None

    def say(self, pcm):
        self.queue += pcm

    async def recv(self):
        self.start = self.start or time.monotonic()
        wait = self.start + self.sent / self.hz - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        size = self.samples * 2
        piece, self.queue = self.queue[:size], self.queue[size:]
        frame = AudioFrame(format="s16", layout="mono", samples=self.samples)
        frame.planes[0].update(piece.ljust(size, b"\0"))
        frame.sample_rate, frame.pts, frame.time_base = self.hz, self.sent, fractions.Fraction(1, self.hz)
        self.sent += self.samples
        return frame


def post(url, body=b"", content_type="application/sdp"):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": content_type}, method="POST")
    with urllib.request.urlopen(request) as response:
        return response.status, response.headers, response.read().decode()


class Call:
    def __init__(self, url, microphone):
        self.url = url
        self.pc = RTCPeerConnection()
        self.channel = self.pc.createDataChannel("oai-events")
        self.pc.addTrack(microphone)
        self.events = []
        self.levels = []
        self.changed = asyncio.Event()
        self.closed = False
        self.channel.on("message", self.message)
        self.channel.on("close", self.close)
        self.pc.on("track", lambda track: asyncio.ensure_future(self.hear(track)))

    def message(self, text):
        self.events.append(json.loads(text))
        self.changed.set()

    def close(self):
        self.closed = True
        self.changed.set()

    async def hear(self, track):
        while True:
            try:
                frame = await track.recv()
            except Exception:
                return
            pcm = array.array("h", bytes(frame.planes[0])[: frame.samples * 2 * len(frame.layout.channels)])
            self.levels.append(max(map(abs, pcm)) / 32768)
            self.changed.set()

    async def until(self, condition, seconds=60):
        async def wait():
            while not condition():
                self.changed.clear()
                await self.changed.wait()

        await asyncio.wait_for(wait(), seconds)

    async def event(self, kind, after=0, seconds=60):
        await self.until(lambda: any(e["type"] == kind for e in self.events[after:]), seconds)
        return next(e for e in self.events[after:] if e["type"] == kind)

    def is_loud(self):
        return len(self.levels) > 5 and max(self.levels[-5:]) > 0.02

    def is_quiet(self):
        return len(self.levels) > 5 and max(self.levels[-5:]) < 0.002

    async def open(self):
        await self.pc.setLocalDescription(await self.pc.createOffer())
        status, headers, answer = await asyncio.to_thread(
            post, self.url + "/v1/realtime/calls", self.pc.localDescription.sdp.encode()
        )
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        return status, headers["Location"]


async def main(url, path):
    with wave.open(path) as file:
        hz = file.getframerate()
        speech = file.readframes(file.getnframes())
    microphone = Microphone(hz)
    call = Call(url, microphone)
    started = time.monotonic()
    status, location = await call.open()
    await call.event("session.created")
    result = {"status": status, "location": location, "createdMs": round((time.monotonic() - started) * 1000)}
    call.channel.send(
        json.dumps({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"transcription": {}}}}})
    )
    await call.event("session.updated")
    microphone.say(speech)
    transcript = await call.event("conversation.item.input_audio_transcription.completed")
    result["transcript"] = transcript["transcript"]
    await call.event("output_audio_buffer.started")
    await call.until(call.is_loud)
    mark = len(call.events)
    microphone.say(speech)
    await call.event("input_audio_buffer.speech_started", mark)
    interrupted = time.monotonic()
    await call.event("output_audio_buffer.cleared", mark)
    await call.until(call.is_quiet)
    result["silenceMs"] = round((time.monotonic() - interrupted) * 1000)
    done = await call.event("response.done", mark)
    result["response"] = done["response"]["status"]
    hangup, _, _ = await asyncio.to_thread(post, f"{url}{location}/hangup")
    result["hangup"] = hangup
    await call.until(lambda: call.closed)
    result["types"] = sorted({event["type"] for event in call.events})
    await call.pc.close()
    print(json.dumps(result))


asyncio.run(main(sys.argv[1], sys.argv[2]))
