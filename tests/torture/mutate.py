"""Good inputs made bad: bytes, text, JSON, arrays and tensors, each damaged in the ways its own kind can be.

Every function takes a `random.Random`, so that an input follows from its number alone.
"""

import copy
import io
import json
import re
import struct
from random import Random
from typing import Any

import numpy as np

WORDS = [b"nan", b"inf", b"-inf", b"1e400", b"-1", b"0", b"1e-320", b"[]", b"{}", b"null", b"true", b'""', b"NaN"]
WORDS += [b"\xff\xfe", b"\0", b"9" * 5000, b"\xd9\xa3", b"[" * 3000, b"\x1b[31m", b"../../..", b"1_000", b"0x10", b","]
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    10**9,
    10**30,
    -0.0,
    1e-320,
    1e308,
    "",
    "x",
    "nan",
    "1e9",
    "../../x",
]
VALUES += [
    "/etc/passwd",
    "a\0b",
    "\ud800",
    "[/b]",
    "\x1b[2J",
    "é" * 300,
    "9" * 5000,
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    DEEP,
]
VALUES += [float("nan"), float("inf"), [1, 2, 3], [0.0] * 16, "٣", 2**63, -(2**63), 0.5, [[1.0] * 4] * 4, {"a": 1}]


def damaged(content: bytes, chance: Random) -> bytes:
    """One to three wounds."""
    for _ in range(chance.randint(1, 3)):
        content = _wounded(content, chance)
    return content


def _wounded(content: bytes, chance: Random) -> bytes:
    """A byte, a cut, an insertion, a line lost or doubled, a word changed, an early end."""
    at, length = chance.randrange(len(content) + 1), chance.choice([1, 2, 4, 8, 12, 200])
    kind = chance.randrange(8)
    if kind == 0:
        return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + content[at + length :]
    if kind == 2:
        return content[:at] + chance.choice(WORDS) + content[at:]
    if kind == 3:
        return content[:at] + chance.randbytes(length) + content[at:]
    if kind == 4:
        return content[:at]
    between = b"\n" if kind in (5, 6) else chance.choice([b" ", b",", b":", b"="])
    pieces = content.split(between)
    piece = chance.randrange(len(pieces))
    if kind == 5:
        return between.join(pieces[:piece] + pieces[piece + 1 :])
    if kind == 6:
        return between.join(pieces[: piece + 1] + pieces[piece:])
    return between.join([*pieces[:piece], chance.choice(WORDS), *pieces[piece + 1 :]])


NUMBERS = [
    "-1",
    "0",
    "1",
    "2.5",
    "1e9",
    "1e-9",
    "1e308",
    "nan",
    "inf",
    "٣",
    "9" * 5000,
    "1_0",
    "0x1",
    "-0",
    "+1",
    "1e",
    ".",
]
VOCABULARY = [
    *NUMBERS,
    "left",
    "right",
    "up",
    "in",
    "and",
    "then",
    "hold",
    "for",
    "linear",
    "smooth",
    "radius",
    "deg",
    "m",
    "x",
]
VOCABULARY += [
    "(",
    ")",
    ",",
    "=",
    "-",
    "",
    "True",
    "None",
    "[1, 2]",
    "((1,),)",
    "{}",
    "'",
    '"',
    "near",
    "metric",
    "static",
    "pan",
]


def odd_text(text: str, chance: Random) -> str:
    """Text for an option: mostly one word or number in another's place, sometimes bytes that no keyboard types."""
    if chance.random() < 0.25:
        text = _wounded(text.encode(), chance).decode("utf-8", "surrogateescape")
        return text.replace("\0", "") if chance.random() < 0.9 else text
    words = re.findall(r"[A-Za-z_]+|[0-9.]+|\s+|.", text)
    place = chance.randrange(len(words))
    is_number = words[place][0].isdigit()
    words[place] = chance.choice(NUMBERS if is_number and chance.random() < 0.8 else VOCABULARY)
    if chance.random() < 0.2:
        words = words[:place] + words[place + 1 :] if chance.random() < 0.5 else words[: place + 1] + words[place:]
    return "".join(words)


def odd_value(value: Any, chance: Random) -> Any:
    """JSON's values somewhere replaced, lost, renamed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        holder, key = _place_in(value, chance)
        if holder is None:
            return copy.deepcopy(chance.choice(VALUES))
        kind = chance.randrange(6)
        if kind <= 2:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, dict):
            holder[chance.choice(["", "x", "format", "é", "a" * 2000])] = holder.pop(key)
        elif isinstance(holder, list):
            holder.insert(key, holder[key])
    return value


def _place_in(value: Any, chance: Random) -> tuple[Any, Any]:
    """A container inside a value, and one of its keys; deeper ones are as likely as shallow ones."""
    places: list[tuple[Any, Any]] = []

    def walk(inside: Any, depth: int) -> None:
        if depth > 12 or len(places) > 3000:
            return
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            places.append((inside, key))
            walk(inside[key], depth + 1)

    walk(value, 0)
    return chance.choice(places) if places else (None, None)


def odd_json(value: Any, chance: Random) -> bytes:
    """A JSON file: odd values mostly, damaged bytes sometimes."""
    text = json.dumps(value if chance.random() < 0.3 else odd_value(value, chance))
    data = text.encode("utf-8", "surrogatepass")
    return damaged(data, chance) if chance.random() < 0.4 else data


DTYPES = [
    "<f4",
    ">f4",
    "<f8",
    "<f2",
    "<i4",
    ">i8",
    "<u8",
    "|u1",
    "|b1",
    "<c8",
    "|S3",
    "<U3",
    "<M8[s]",
    "<f16",
    "|V5",
    "|O",
]


def odd_array(array: np.ndarray, chance: Random) -> np.ndarray:
    """Another kind of number, another shape, or values that no measurement gives."""
    kind = chance.randrange(5)
    if kind == 0:
        try:
            with np.errstate(all="ignore"):
                return array.astype(chance.choice(DTYPES))
        except (ValueError, TypeError):
            return array
    if kind == 1:
        axes = [chance.choice([0, 1, 2, 3, 5]) for _ in range(chance.randint(0, 4))]
        return np.resize(array, axes) if array.size and 0 not in axes else np.zeros(axes, array.dtype)
    if kind == 2:
        return np.moveaxis(array, 0, -1) if array.ndim else array
    array = np.array(array)
    if array.size and array.dtype.kind in "fiu":
        odd = [0, -1, 1e-44, 1e38, 1e300, np.nan, np.inf, -np.inf, 1e-300, 20.0]
        with np.errstate(all="ignore"):
            chosen = np.array(chance.choice(odd)).astype(array.dtype)
        array.reshape(-1)[:: chance.choice([1, 2, 7, max(1, array.size // 2)])] = chosen
    return array


def odd_npz(arrays: dict[str, np.ndarray], chance: Random) -> bytes:
    """A .npz with an array changed, lost or renamed; damaged bytes sometimes."""
    arrays = dict(arrays)
    name = chance.choice(list(arrays))
    kind = chance.randrange(5)
    if kind == 0:
        arrays[chance.choice(["", "x", "array", "../x", "é"])] = arrays.pop(name)
    elif kind == 1:
        del arrays[name]
    else:
        arrays[name] = odd_array(arrays[name], chance)
    file = io.BytesIO()
    save = np.savez if chance.random() < 0.5 else np.savez_compressed
    save(file, **{name or "_": array for name, array in arrays.items()})
    return damaged(file.getvalue(), chance) if chance.random() < 0.4 else file.getvalue()


def odd_npy(array: np.ndarray, chance: Random) -> bytes:
    file = io.BytesIO()
    np.save(file, odd_array(array, chance), allow_pickle=True)
    return damaged(file.getvalue(), chance) if chance.random() < 0.4 else file.getvalue()


KINDS = ["F32", "F64", "F16", "BF16", "I64", "I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "U16", "C64", "X"]


def odd_safetensors(content: bytes, chance: Random) -> bytes:
    """A safetensors file whose header is changed: text entries, kinds of numbers, shapes, names; or damaged bytes."""
    if chance.random() < 0.2:
        return damaged(content, chance)
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    notes = header.get("__metadata__", {})
    names = [name for name in header if name != "__metadata__"]
    kind = chance.randrange(6)
    if kind <= 2 and notes:
        name = chance.choice(list(notes))
        notes[name] = json.dumps(odd_value(json.loads(notes[name]), chance))
        if chance.random() < 0.2:
            notes[name] = damaged(notes[name].encode("utf-8", "replace"), chance).decode("utf-8", "replace")
    elif kind == 3 and names:
        _reshape(header[chance.choice(names)], chance)
    elif kind == 4 and names:
        header[chance.choice(["x", "", "é", "a" * 3000])] = header.pop(chance.choice(names))
    elif names and len(body) >= 2:  # other numbers: NaN, infinity, huge
        start, end = header[chance.choice(names)]["data_offsets"]
        word = chance.choice([b"\x00\x7e", b"\x00\x7c", b"\xff\x7b", b"\x00\x00", b"\xff\xff"])
        body = body[:start] + (word * ((end - start) // 2 + 1))[: end - start] + body[end:]
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + body


def _reshape(entry: dict[str, Any], chance: Random) -> None:
    """The same bytes as other numbers or in another shape, sometimes a shape that they do not fill."""
    sizes = {"F64": 8, "I64": 8, "F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1, "BOOL": 1}
    start, end = entry["data_offsets"]
    dtype = chance.choice(KINDS)
    count = (end - start) // sizes.get(dtype, 1)
    entry["dtype"] = dtype
    entry["shape"] = chance.choice([[count], [1, count], [count, 1], [], [0], [2**40], entry["shape"], [-1]])
