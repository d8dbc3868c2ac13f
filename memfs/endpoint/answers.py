"""Answers: from the bytes of an answer to the object or the vectors that a model gave.

Owns what counts as usable: JSON in the shape of the protocol, with numbers that are numbers. Nothing is asked here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_SHOWN = 120


class Unusable(ValueError):
    """The answer is not what was asked for; the text says why."""


def chat_answer(body: bytes, wanted: Iterable[str]) -> dict[str, Any]:
    """The JSON object in the first choice of a chat answer.

    Models that were told to answer with an object and nothing else put it into a code block or behind their thoughts
    all the same; there it is found.

    Args:
        wanted: the keys it must have.

    Raises:
        Unusable: the model refused, was cut off, or gave no such object.
    """
    choices = _mapping(read(body)).get("choices")
    choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
    message = _mapping(choice.get("message"))
    refusal = message.get("refusal")
    if refusal or choice.get("finish_reason") == "content_filter":
        raise Unusable(f"the model refused: {excerpt(str(refusal or 'its filter stepped in'))}")
    if choice.get("finish_reason") == "length":
        raise Unusable("the model's answer was cut off")
    text = _text(message.get("content"))
    answer = _object_in(text)
    if missing := [key for key in wanted if key not in answer]:
        raise Unusable(f"the model's answer lacks {missing[0]!r}: {excerpt(text)}")
    return answer


def vectors(body: bytes, count: int) -> list[list[float]]:
    """The vectors of an embeddings answer, in the order of the texts.

    Raises:
        Unusable: there are not ``count`` vectors of one length, of finite numbers.
    """
    rows = _mapping(read(body)).get("data")
    if not isinstance(rows, list) or len(rows) != count:
        got = len(rows) if isinstance(rows, list) else "no"
        raise Unusable(f"{got} vectors came back for {count} texts")
    found: dict[int, list[float]] = {}
    for position, row in enumerate(map(_mapping, rows)):
        place = row.get("index", position)
        found[place if type(place) is int else position] = _vector(row.get("embedding"))
    if set(found) != set(range(count)) or len({len(vector) for vector in found.values()}) > 1:
        raise Unusable("the vectors are not numbered through, or not of one length")
    return [found[place] for place in range(count)]


def complaint(body: bytes) -> str:
    """What an answer that is an error says, shortened; "" where it says nothing readable."""
    try:
        answer = read(body)
    except Unusable:
        return excerpt(body[: 4 * _SHOWN].decode("utf-8", "replace"))
    told = answer.get("error", answer.get("message", answer.get("detail", ""))) if isinstance(answer, dict) else answer
    return excerpt(str(told.get("message", told) if isinstance(told, dict) else told))


def excerpt(text: str) -> str:
    """The beginning of a foreign text in one line, without characters that a terminal would obey."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 4 * _SHOWN])
    line = " ".join(plain.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def read(body: bytes | str) -> Any:
    """JSON as its standard has it: no NaN, no infinity.

    Raises:
        Unusable: it is none, or nested too deeply.
    """
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        shown = body if isinstance(body, str) else body[: 4 * _SHOWN].decode("utf-8", "replace")
        raise Unusable(f"the answer is not JSON: {excerpt(shown) or 'it is empty'}") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unusable("the answer does not have the shape of the protocol")
    return value


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str) or not content.strip():
        raise Unusable("the model answered nothing")
    return _without_thoughts(content).strip()


def _without_thoughts(text: str) -> str:
    """The text without what stands between ``<think>`` and ``</think>``, in time that grows with its length only."""
    kept, at = [], 0
    while (start := text.find("<think>", at)) >= 0 and (end := text.find("</think>", start)) >= 0:
        kept.append(text[at:start])
        at = end + len("</think>")
    return "".join([*kept, text[at:]])


def _object_in(text: str) -> dict[str, Any]:
    fenced = _FENCED.search(text)
    for part in (text, fenced[1] if fenced else "", text[text.find("{") : text.rfind("}") + 1]):
        try:
            answer = read(part)
        except Unusable:
            continue
        if isinstance(answer, dict):
            return answer
    raise Unusable(f"the model's answer is no JSON object: {excerpt(text)}")


def _vector(value: object) -> list[float]:
    if not isinstance(value, list) or not value or not all(type(one) in (float, int) for one in value):
        raise Unusable("a vector is not a list of numbers")
    try:
        vector = [float(one) for one in value]
    except OverflowError as error:
        raise Unusable("a vector has a number beyond all bounds") from error
    if not all(map(math.isfinite, vector)):
        raise Unusable("a vector has a number beyond all bounds")
    return vector
