"""MurmurHash3 of 32 bits: Appleby, public domain; that of Vowpal Wabbit."""

from __future__ import annotations

import struct

MASK = 0xFFFFFFFF


def _turned(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & MASK


def _mixed(value: int) -> int:
    return _turned(value * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK


def murmur3(data: bytes, seed: int) -> int:
    """The hash of some bytes."""
    found, whole = seed, len(data) // 4
    for word in struct.unpack(f"<{whole}I", data[: 4 * whole]):
        found = (_turned(found ^ _mixed(word), 13) * 5 + 0xE6546B64) & MASK
    if len(data) % 4:
        found ^= _mixed(int.from_bytes(data[4 * whole :], "little"))
    found ^= len(data)
    found = (found ^ (found >> 16)) * 0x85EBCA6B & MASK
    found = (found ^ (found >> 13)) * 0xC2B2AE35 & MASK
    return found ^ (found >> 16)
