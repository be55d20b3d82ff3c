"""Gemini's generateContent: a request read, an answer said as JSON or streamed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from tests.agents.scripted_turns import Answer, Counted, Done, Json, Tool, Turn, event, pieces, text_of


def read_gemini(body: Json) -> Turn:
    contents: list[Json] = body.get("contents") or []
    parts = [p for c in contents for p in c.get("parts") or []]
    settings = body.get("generationConfig") or {}
    declared = [d for t in body.get("tools") or [] for d in t.get("functionDeclarations") or []]
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    users = [p for c in contents if c.get("role") != "model" for p in c.get("parts") or []]
    wants_json = settings.get("responseMimeType") == "application/json"
    answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
    return Turn(
        dialect="gemini",
        model="",
        stream=False,
        text="\n".join(str(p.get("text", "")) for p in [*(system.get("parts") or []), *users]),
        tools=tuple(Tool(d["name"], d.get("parametersJsonSchema") or d.get("parameters") or {}) for d in declared),
        done=tuple(Done(a["name"], json.dumps(a.get("response"))) for a in answers),
        said=tuple(text_of(c.get("parts")) for c in contents if c.get("role") == "model"),
        schema=settings.get("responseJsonSchema") or settings.get("responseSchema") or ({} if wants_json else None),
    )


def _gemini_frame(turn: Turn, parts: list[Json], finish: str | None, usage: Counted | None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    frame: Json = {"candidates": [candidate], "modelVersion": turn.model, "responseId": uuid.uuid4().hex[:22]}
    if finish:
        candidate["finishReason"] = finish
    if usage:
        frame["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
            "cachedContentTokenCount": usage.cached,
        }
    return frame


def _gemini_call(answer: Answer) -> list[Json]:
    if answer.call is None:
        return []
    return [{"functionCall": {"name": answer.call.tool.name, "args": answer.call.arguments}}]


def gemini_json(turn: Turn, answer: Answer) -> Json:
    return _gemini_frame(turn, [{"text": answer.text}, *_gemini_call(answer)], "STOP", answer.usage)


def gemini_stream(turn: Turn, answer: Answer) -> Iterator[str]:
    for piece in pieces(answer.text):
        yield event(_gemini_frame(turn, [{"text": piece}], None, None))
    yield event(_gemini_frame(turn, _gemini_call(answer) or [{"text": ""}], "STOP", answer.usage))
