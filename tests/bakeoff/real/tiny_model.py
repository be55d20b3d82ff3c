"""A model made on the spot: small enough for any machine, whole enough for a real engine.

It is a one-layer llama in the GGUF format, version 3, whose vocabulary is the 256 bytes. Its weights are random but for
a few habits: after a line's end it begins a call, and it ends strings, objects and calls as soon as it may. It says
nothing sensible, but what an engine makes of it are a real server's answers: with tools the engine lets it write only
what their schemas allow, so a real call comes out, with empty strings and first choices for arguments.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

_WIDTH, _HEADS, _INNER, _CONTEXT = 320, 4, 64, 65_536
_SPECIAL = ("<unk>", "<s>", "</s>")
_UNKNOWN, _CONTROL, _BYTE, _NORMAL = 2, 3, 6, 1
_END_OF_ANSWER = 2
_ALIGNMENT = 32

#: How a call is written. No letter stands twice in the opening, so each can be the habit of the one before it.
OPENING, CLOSING = "<invoke>\n", "\n[end]"

#: Roles and contents one by one, the tools as JSON before them.
CHAT_TEMPLATE = """\
{%- if tools %}<|im_start|>system
# Tools
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
Write each call as <invoke>, its name and arguments as JSON, and [end].<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
<invoke>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
[end]
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

#: What it likes to write, whatever came before.
_LIKED = {'"': 8.0, "]": 7.0, "}": 6.0, ",": 5.0}

_U32, _F32, _STRING, _ARRAY, _I32 = 4, 6, 8, 9, 5


def write_tiny_model(path: Path, *, seed: int = 0) -> None:
    """Write the model; the same seed gives the same bytes."""
    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *([_BYTE] * 256), _NORMAL]
    facts = [
        _fact("general.architecture", _STRING, _text("llama")),
        _fact("general.name", _STRING, _text("random")),
        _fact("llama.context_length", _U32, struct.pack("<I", _CONTEXT)),
        _fact("llama.embedding_length", _U32, struct.pack("<I", _WIDTH)),
        _fact("llama.block_count", _U32, struct.pack("<I", 1)),
        _fact("llama.feed_forward_length", _U32, struct.pack("<I", _INNER)),
        _fact("llama.attention.head_count", _U32, struct.pack("<I", _HEADS)),
        _fact("llama.attention.layer_norm_rms_epsilon", _F32, struct.pack("<f", 1e-5)),
        _fact("llama.rope.dimension_count", _U32, struct.pack("<I", _WIDTH // _HEADS)),
        _fact("llama.vocab_size", _U32, struct.pack("<I", len(tokens))),
        _fact("tokenizer.ggml.model", _STRING, _text("llama")),
        _fact("tokenizer.ggml.tokens", _ARRAY, _array(_STRING, [_text(token) for token in tokens])),
        _fact("tokenizer.ggml.scores", _ARRAY, _array(_F32, [struct.pack("<f", 0.0)] * len(tokens))),
        _fact("tokenizer.ggml.token_type", _ARRAY, _array(_I32, [struct.pack("<i", kind) for kind in kinds])),
        _fact("tokenizer.ggml.unknown_token_id", _U32, struct.pack("<I", 0)),
        _fact("tokenizer.ggml.bos_token_id", _U32, struct.pack("<I", 1)),
        _fact("tokenizer.ggml.eos_token_id", _U32, struct.pack("<I", _END_OF_ANSWER)),
        _fact("tokenizer.chat_template", _STRING, _text(CHAT_TEMPLATE)),
    ]
    tensors = _tensors(len(tokens), np.random.default_rng(seed))
    described, data = b"", b""
    for name, values in tensors.items():
        shape = values.shape[::-1]
        described += _text(name) + struct.pack("<I", len(shape))
        described += b"".join(struct.pack("<Q", size) for size in shape)
        described += struct.pack("<IQ", 0, len(data))
        raw = values.tobytes()
        data += raw + b"\0" * (-len(raw) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)) + b"".join(facts) + described
    path.write_bytes(head + b"\0" * (-len(head) % _ALIGNMENT) + data)


def _tensors(vocabulary: int, chance: np.random.Generator) -> dict[str, npt.NDArray[np.float32]]:
    """Each token is a direction of its own that passes the block nearly as it is: the last matrix is a bigram table."""

    def some(*shape: int) -> npt.NDArray[np.float32]:
        return (chance.standard_normal(shape) * 1e-3).astype(np.float32)

    token = some(vocabulary, _WIDTH)
    token[:, :vocabulary] += np.eye(vocabulary, dtype=np.float32)
    after = (chance.standard_normal((vocabulary, vocabulary)) * 0.1).astype(np.float32)
    for text, weight in _LIKED.items():
        after[_byte(text), :] += weight
    for before, behind in zip("\n" + OPENING, OPENING, strict=False):
        after[_byte(behind), _byte(before)] += 20
    after[_byte("["), _byte("}")] += 20
    after[_END_OF_ANSWER, _byte("]")] += 20
    output = np.zeros((vocabulary, _WIDTH), np.float32)
    output[:, :vocabulary] = after / np.sqrt(_WIDTH)
    one = np.ones(_WIDTH, np.float32)
    square = {f"blk.0.attn_{part}.weight": some(_WIDTH, _WIDTH) for part in ("q", "k", "v", "output")}
    return {
        "token_embd.weight": token,
        "output_norm.weight": one,
        "output.weight": output,
        "blk.0.attn_norm.weight": one,
        "blk.0.ffn_norm.weight": one,
        **square,
        "blk.0.ffn_gate.weight": some(_INNER, _WIDTH),
        "blk.0.ffn_up.weight": some(_INNER, _WIDTH),
        "blk.0.ffn_down.weight": some(_WIDTH, _INNER),
    }


def _byte(text: str) -> int:
    return len(_SPECIAL) + ord(text)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _fact(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


def _array(kind: int, values: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)
