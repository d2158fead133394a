"""Slow references in plain Python: canonical bytes by struct, sums by fsum, routes by sorting. No numpy arithmetic."""

import hashlib
import math
import struct

CODES = {"float32": "<f", "float16": "<e", "int16": "<h"}


def number_bytes(dtype, value):
    """One number's little-endian bytes; bfloat16: the upper half of the float32 that holds it exactly."""
    if dtype == "bfloat16":
        whole = struct.pack("<f", value)
        if whole[:2] != b"\0\0":
            raise ValueError(f"{value} is no bfloat16")
        return whole[2:]
    return struct.pack(CODES[dtype], value)


def sha256(dtype, rows):
    """Of the header and every number, row by row."""
    data = f"{dtype}|{len(rows)},{len(rows[0])}".encode()
    return hashlib.sha256(data + b"".join(number_bytes(dtype, value) for row in rows for value in row)).hexdigest()


def route(weights, experts):
    """A token's experts and weights, heaviest first, equal weights by the lower ID."""
    return sorted(zip(weights, experts, strict=True), key=lambda pair: (-pair[0], pair[1]))


def loads(routes, count):
    """Load and weighted load of routes [(weight, expert)...]."""
    load, weighted = [0] * count, [0.0] * count
    for one in routes:
        for weight, expert in one:
            load[expert] += 1
            weighted[expert] += weight
    return load, weighted


def statistics(numbers):
    """Mean, standard deviation, root mean square, smallest, largest."""
    count = len(numbers)
    mean = math.fsum(numbers) / count
    return (
        mean,
        math.sqrt(math.fsum((one - mean) ** 2 for one in numbers) / count),
        math.sqrt(math.fsum(one * one for one in numbers) / count),
        min(numbers),
        max(numbers),
    )


def cosine(left, right):
    """Of two rows that aren't zero."""
    dot = math.fsum(a * b for a, b in zip(left, right, strict=True))
    return dot / math.sqrt(math.fsum(a * a for a in left) * math.fsum(b * b for b in right))


def relative_l2(left, right):
    """|B - A| / |A| over all rows."""
    pairs = [(a, b) for one, other in zip(left, right, strict=True) for a, b in zip(one, other, strict=True)]
    return math.sqrt(math.fsum((b - a) ** 2 for a, b in pairs) / math.fsum(a * a for a, _ in pairs))


def total_variation(left, right):
    """Half the sum of |p - q| over shares."""
    return math.fsum(abs(p / sum(left) - q / sum(right)) for p, q in zip(left, right, strict=True)) / 2
