"""Makes test/fixtures/audio/whisper-mel.f32: what pipecat-ai 1.14.0 computes for Smart Turn v3 from the spoken question,
with silence in front up to 8 s; every 16th of its 800 frames, [50, 80] little-endian float32.

    pip install numpy; pip download --no-deps pipecat-ai==1.14.0; unzip pipecat_ai-*.whl -d pipecat
    python tools/whisper-mel.py pipecat/pipecat/audio/turn/smart_turn/_whisper_features.py
"""
import importlib.util
import sys
import wave

import numpy as np

spec = importlib.util.spec_from_file_location("features", sys.argv[1])
features = importlib.util.module_from_spec(spec)
spec.loader.exec_module(features)

with wave.open("test/fixtures/voicechat/audio/question.wav") as file:
    speech = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
turn = np.pad(speech, (128000 - len(speech), 0))
features.compute_whisper_log_mel_features(turn)[:, ::16].T.astype("<f4").tofile("test/fixtures/audio/whisper-mel.f32")
