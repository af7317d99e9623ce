"""4-bit weights: groups of 32 along a row, each with a scale in half precision."""

import numpy as np

GROUP = 32
# Scales that are tried for each group, around the one that uses all steps.
TRIALS = np.linspace(0.70, 1.10, 21, dtype=np.float32)


def quantise(matrix, scales=None):
    """Steps (int8, -8..7) and scales (float16) of a matrix: those given, or for each group the one with the least squared
    error.

    The scale's sign is the one that gives the largest value the step -8, as there is no +8.
    """
    groups = matrix.reshape(-1, GROUP).astype(np.float32)
    if scales is not None:
        scales = scales.astype(np.float16)
        return steps(groups, scales.reshape(-1, 1)).astype(np.int8).reshape(matrix.shape), scales
    largest = np.take_along_axis(groups, np.abs(groups).argmax(1)[:, None], 1)
    best_error = np.full((len(groups), 1), np.inf, np.float32)
    best_scale = np.zeros((len(groups), 1), np.float16)
    for trial in TRIALS:
        scale = (largest * (trial / -8)).astype(np.float16)
        error = ((steps(groups, scale) * scale.astype(np.float32) - groups) ** 2).sum(1, keepdims=True)
        better = error < best_error
        best_error = np.where(better, error, best_error)
        best_scale = np.where(better, scale, best_scale)
    shape = matrix.shape
    found = steps(groups, best_scale)
    return found.astype(np.int8).reshape(shape), best_scale.reshape(*shape[:-1], shape[-1] // GROUP)


def steps(groups, scale):
    scale = scale.astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    return np.clip(np.round(groups * inverse), -8, 7)


def restore(found, scales):
    """The float32 matrix that steps and scales stand for."""
    groups = found.reshape(*scales.shape, GROUP).astype(np.float32)
    return (groups * scales[..., None].astype(np.float32)).reshape(found.shape)


def pack(found):
    """Two steps in a byte, 8 added: of a group's 16 bytes, byte i holds step i (low half) and step i + 16 (high half)."""
    groups = (found.reshape(-1, 2, GROUP // 2) + 8).astype(np.uint8)
    return (groups[:, 0] | groups[:, 1] << 4).tobytes()


def unpack(data, shape):
    packed = np.frombuffer(data, np.uint8).reshape(-1, GROUP // 2)
    return (np.stack([packed & 15, packed >> 4], 1).astype(np.int8) - 8).reshape(shape)


def to_int8_rows(matrix):
    """The matrix in int8 steps per row, as the program keeps it: what these stand for, in float32."""
    scale = np.maximum(np.abs(matrix).max(1, keepdims=True), 1e-12) / 127
    return (np.round(matrix / scale) * scale).astype(np.float32)
