"""Triton kernels of the fused layers: everything in a layer except matrix products.

Each program iterates over rows (tokens or sentences), keeps sums over them in registers, and adds
these to float32 gradients once, at its end. A hash of a value's place and the site's seed decides
whether it is dropped; backward computes the same hash, so no mask is stored.
"""

from __future__ import annotations

import triton
import triton.language as tl

# By default Triton compiles a kernel again for numbers that are 1 or multiples of 16.
_VARYING = ["total", "rows", "site", "span", "each", "shortest"]


@triton.jit(do_not_specialize=_VARYING)
def embed_forward(
    ids, positions, types, words, places, kinds, weight, shift, seeds, out, normed, spreads,
    first_position, eps, p,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TYPES: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    word = tl.load(ids + token)
    place = tl.load(positions + token) + first_position
    x = tl.load(words + word * WIDTH + column, inside, 0.0)
    x += tl.load(places + place * WIDTH + column, inside, 0.0)
    if TYPES:
        kind = tl.load(types + token)
        x += tl.load(kinds + kind * WIDTH + column, inside, 0.0)
    x_hat, spread = _normalise(x, inside, eps, WIDTH)
    y = x_hat * tl.load(weight + column, inside, 0.0) + tl.load(shift + column, inside, 0.0)
    if p > 0.0:
        y *= _kept(tl.load(seeds), token * WIDTH + column, p)
    at = token * WIDTH + column
    tl.store(out + at, y, inside)
    tl.store(normed + at, x_hat, inside)
    tl.store(spreads + token, spread)


@triton.jit(do_not_specialize=_VARYING)
def embed_backward(
    grad, ids, positions, types, weight, seeds, normed, spreads,
    d_words, d_places, d_kinds, d_weight, d_shift,
    total, first_position, p, each,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TYPES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    scale = tl.load(weight + column, inside, 0.0)
    sum_weight = tl.zeros([BLOCK], tl.float32)
    sum_shift = tl.zeros([BLOCK], tl.float32)
    sum_first = tl.zeros([BLOCK], tl.float32)
    sum_second = tl.zeros([BLOCK], tl.float32)
    begin = tl.program_id(0) * each
    for token in range(begin, tl.minimum(begin + each, total)):
        at = token * WIDTH + column
        dy = tl.load(grad + at, inside, 0.0).to(tl.float32)
        if p > 0.0:
            dy *= _kept(tl.load(seeds), token * WIDTH + column, p)
        x_hat = tl.load(normed + at, inside, 0.0).to(tl.float32)
        sum_weight += dy * x_hat
        sum_shift += dy
        dx = _norm_gradient(dy * scale, x_hat, tl.load(spreads + token), inside, WIDTH)
        word = tl.load(ids + token)
        place = tl.load(positions + token) + first_position
        tl.atomic_add(d_words + word * WIDTH + column, dx, inside, sem="relaxed")
        tl.atomic_add(d_places + place * WIDTH + column, dx, inside, sem="relaxed")
        if TYPES:
            kind = tl.load(types + token)
            sum_first += tl.where(kind == 0, dx, 0.0)
            sum_second += tl.where(kind == 1, dx, 0.0)
    tl.atomic_add(d_weight + column, sum_weight, inside, sem="relaxed")
    tl.atomic_add(d_shift + column, sum_shift, inside, sem="relaxed")
    if TYPES:
        tl.atomic_add(d_kinds + column, sum_first, inside, sem="relaxed")
        if TYPES > 1:
            tl.atomic_add(d_kinds + WIDTH + column, sum_second, inside, sem="relaxed")


@triton.jit(do_not_specialize=_VARYING)
def residual_norm_forward(
    x, bias, residual, weight, shift, seeds, out, normed, spreads, site, eps, p,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    at = row * WIDTH + column
    z = tl.load(x + at, inside, 0.0).to(tl.float32) + tl.load(bias + column, inside, 0.0)
    if p > 0.0:
        z *= _kept(tl.load(seeds + site), at, p)
    z += tl.load(residual + at, inside, 0.0).to(tl.float32)
    x_hat, spread = _normalise(z, inside, eps, WIDTH)
    y = x_hat * tl.load(weight + column, inside, 0.0) + tl.load(shift + column, inside, 0.0)
    tl.store(out + at, y, inside)
    tl.store(normed + at, x_hat, inside)
    tl.store(spreads + row, spread)


@triton.jit(do_not_specialize=_VARYING)
def residual_norm_backward(
    grad, weight, seeds, normed, spreads, d_residual, d_x, d_weight, d_shift, d_bias,
    site, total, p, each,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TRAINS: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    scale = tl.load(weight + column, inside, 0.0)
    sum_weight = tl.zeros([BLOCK], tl.float32)
    sum_shift = tl.zeros([BLOCK], tl.float32)
    sum_bias = tl.zeros([BLOCK], tl.float32)
    begin = tl.program_id(0) * each
    for row in range(begin, tl.minimum(begin + each, total)):
        at = row * WIDTH + column
        dy = tl.load(grad + at, inside, 0.0).to(tl.float32)
        x_hat = tl.load(normed + at, inside, 0.0).to(tl.float32)
        sum_weight += dy * x_hat
        sum_shift += dy
        dz = _norm_gradient(dy * scale, x_hat, tl.load(spreads + row), inside, WIDTH)
        tl.store(d_residual + at, dz, inside)
        if p > 0.0:
            dz *= _kept(tl.load(seeds + site), at, p)
        sum_bias += dz
        tl.store(d_x + at, dz, inside)
    if TRAINS:
        tl.atomic_add(d_weight + column, sum_weight, inside, sem="relaxed")
        tl.atomic_add(d_shift + column, sum_shift, inside, sem="relaxed")
        tl.atomic_add(d_bias + column, sum_bias, inside, sem="relaxed")


@triton.jit(do_not_specialize=_VARYING)
def gelu_forward(x, bias, out, total, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    z = tl.load(x + at, inside, 0.0).to(tl.float32) + tl.load(bias + at % COLUMNS, inside, 0.0)
    tl.store(out + at, _gelu(z), inside)


@triton.jit(do_not_specialize=_VARYING)
def gelu_backward(
    grad, x, bias, d_x, d_bias, total, each,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, TRAINS: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < COLUMNS
    added = tl.load(bias + column, inside, 0.0)
    summed = tl.zeros([BLOCK], tl.float32)
    begin = tl.program_id(1) * each
    for first in range(begin, tl.minimum(begin + each, total), ROWS):
        row = first + tl.arange(0, ROWS)
        real = (row < tl.minimum(begin + each, total))[:, None] & inside[None, :]
        at = row.to(tl.int64)[:, None] * COLUMNS + column[None, :]
        z = tl.load(x + at, real, 0.0).to(tl.float32) + added[None, :]
        below = 0.5 * (1.0 + tl.erf(z * 0.7071067811865476))
        density = 0.3989422804014327 * tl.exp(-0.5 * z * z)
        dz = tl.load(grad + at, real, 0.0).to(tl.float32) * (below + z * density)
        tl.store(d_x + at, dz, real)
        summed += tl.sum(dz, 0)
    if TRAINS:
        tl.atomic_add(d_bias + column, summed, inside, sem="relaxed")


@triton.jit(do_not_specialize=_VARYING)
def turn(
    qkv, cosines, sines, total,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = (token < total)[:, None]
    plane = tl.arange(0, HALF)[None, :]
    cosine = tl.load(cosines + token[:, None] * HALF + plane, real, 0.0)
    sine = tl.load(sines + token[:, None] * HALF + plane, real, 0.0)
    start = qkv + token.to(tl.int64)[:, None] * (6 * HEADS * HALF) + plane
    # The heads of queries, then those of keys.
    for head in range(2 * HEADS):
        at = start + head * 2 * HALF
        first = tl.load(at, real, 0.0).to(tl.float32)
        second = tl.load(at + HALF, real, 0.0).to(tl.float32)
        tl.store(at, first * cosine - second * sine, real)
        tl.store(at + HALF, second * cosine + first * sine, real)


@triton.jit(do_not_specialize=_VARYING)
def gate_gelu(expanded, total, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = at // COLUMNS * (2 * COLUMNS) + at % COLUMNS
    z = tl.load(expanded + place, inside, 0.0).to(tl.float32)
    gate = tl.load(expanded + place + COLUMNS, inside, 0.0).to(tl.float32)
    tl.store(expanded + place, _gelu(z) * gate, inside)


@triton.jit(do_not_specialize=_VARYING)
def attend_forward(
    qkv, offsets, relative, seeds, out, site, rows, span, scale, p, each, shortest,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, LENGTH: tl.constexpr, RELATIVE: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    place = tl.arange(0, LENGTH)
    begin = tl.program_id(0) * each
    for row in range(begin, tl.minimum(begin + each, rows)):
        start = tl.load(offsets + row)
        length = tl.load(offsets + row + 1) - start
        if (length > shortest) & (length <= LENGTH):
            real = place < length
            q, k, v = _load_qkv(qkv, start, head, place, real, HEADS, WIDTH)
            weights = _weights(q, k, relative, head, place, real, span, scale, LENGTH, RELATIVE)
            if p > 0.0:
                weights *= _kept_pairs(seeds, site, row * HEADS + head, place, p, LENGTH)
            _store_mixed(out, weights, v, start, head, place, real, HEADS, WIDTH)


@triton.jit(do_not_specialize=_VARYING)
def attend_disentangled(
    qkv, offsets, query_distances, key_distances, out, total, rows, span, scale, each, shortest,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, LENGTH: tl.constexpr,
    C2P: tl.constexpr, P2C: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    place = tl.arange(0, LENGTH)
    begin = tl.program_id(0) * each
    column = place[:, None] - place[None, :] + span - 1
    for row in range(begin, tl.minimum(begin + each, rows)):
        start = tl.load(offsets + row)
        length = tl.load(offsets + row + 1) - start
        if (length > shortest) & (length <= LENGTH):
            real = place < length
            both = real[:, None] & real[None, :]
            q, k, v = _load_qkv(qkv, start, head, place, real, HEADS, WIDTH)
            scores = tl.dot(q, tl.trans(k)) * scale
            token = (head * total + start + place) * (2 * span)
            if C2P:
                scores += tl.load(query_distances + token[:, None] + column, both, 0.0)
            if P2C:
                scores += tl.load(key_distances + token[None, :] + column, both, 0.0)
            weights = _softmax(scores, real)
            _store_mixed(out, weights, v, start, head, place, real, HEADS, WIDTH)


@triton.jit(do_not_specialize=_VARYING)
def attend_backward(
    grad, qkv, offsets, relative, seeds, d_qkv, d_bias, d_relative,
    site, rows, span, scale, p, each, shortest,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, LENGTH: tl.constexpr,
    RELATIVE: tl.constexpr, TRAINS: tl.constexpr, LEARNS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    place = tl.arange(0, LENGTH)
    dim = tl.arange(0, WIDTH)
    sum_q = tl.zeros([WIDTH], tl.float32)
    sum_k = tl.zeros([WIDTH], tl.float32)
    sum_v = tl.zeros([WIDTH], tl.float32)
    sum_relative = tl.zeros([LENGTH, LENGTH], tl.float32)
    rows_taken = 0
    begin = tl.program_id(0) * each
    for row in range(begin, tl.minimum(begin + each, rows)):
        start = tl.load(offsets + row)
        length = tl.load(offsets + row + 1) - start
        if (length > shortest) & (length <= LENGTH):
            rows_taken += 1
            real = place < length
            q, k, v = _load_qkv(qkv, start, head, place, real, HEADS, WIDTH)
            at = ((start + place) * HEADS + head)[:, None] * WIDTH + dim[None, :]
            dy = tl.load(grad + at, real[:, None], 0.0)
            weights = _weights(q, k, relative, head, place, real, span, scale, LENGTH, RELATIVE)
            d_weights = tl.dot(dy, tl.trans(v))
            used = weights
            if p > 0.0:
                kept = _kept_pairs(seeds, site, row * HEADS + head, place, p, LENGTH)
                used = weights * kept
                d_weights *= kept
            dv = tl.dot(tl.trans(used).to(dy.dtype), dy)
            d_scores = weights * (d_weights - tl.sum(weights * d_weights, 1)[:, None])
            d_scores = tl.where(real[:, None], d_scores, 0.0)
            if LEARNS:
                sum_relative += d_scores
            lowered = (d_scores * scale).to(q.dtype)
            dq = tl.dot(lowered, k)
            dk = tl.dot(tl.trans(lowered), q)
            to = ((start + place) * (3 * HEADS) + head)[:, None] * WIDTH + dim[None, :]
            tl.store(d_qkv + to, dq, real[:, None])
            tl.store(d_qkv + to + HEADS * WIDTH, dk, real[:, None])
            tl.store(d_qkv + to + 2 * HEADS * WIDTH, dv, real[:, None])
            sum_q += tl.sum(dq, 0)
            sum_k += tl.sum(dk, 0)
            sum_v += tl.sum(dv, 0)
    if rows_taken > 0:
        if TRAINS:
            tl.atomic_add(d_bias + head * WIDTH + dim, sum_q, sem="relaxed")
            tl.atomic_add(d_bias + (HEADS + head) * WIDTH + dim, sum_k, sem="relaxed")
            tl.atomic_add(d_bias + (2 * HEADS + head) * WIDTH + dim, sum_v, sem="relaxed")
        if LEARNS:
            at = (head * span + place)[:, None] * span + place[None, :]
            near = (place < span)[:, None] & (place < span)[None, :]
            tl.atomic_add(d_relative + at, sum_relative, near, sem="relaxed")


@triton.jit
def _gelu(z):
    return 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))


@triton.jit
def _normalise(x, inside, eps, WIDTH: tl.constexpr):
    """x [BLOCK] at mean 0 and standard deviation 1, and one over its standard deviation."""
    mean = tl.sum(tl.where(inside, x, 0.0), 0) / WIDTH
    centred = tl.where(inside, x - mean, 0.0)
    spread = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / WIDTH + eps)
    return centred * spread, spread


@triton.jit
def _norm_gradient(dy, x_hat, spread, inside, WIDTH: tl.constexpr):
    """The gradient before a norm; dy: the gradient after it times the norm's weight."""
    along = tl.sum(dy * x_hat, 0) / WIDTH
    mean = tl.sum(tl.where(inside, dy, 0.0), 0) / WIDTH
    return tl.where(inside, (dy - mean - x_hat * along) * spread, 0.0)


@triton.jit
def _kept(seed, at, p):
    """The factors of dropout for the values at these places: 0 or 1 / (1 - p)."""
    return tl.where(uniform(seed, at) >= p, 1.0 / (1.0 - p), 0.0)


@triton.jit
def uniform(seed, at):
    """A number in [0, 1) for each place: two hashes, a tenth of the work of Triton's Philox.

    For rows of 128 tokens attention draws 128 of them per token and head, forward and backward.
    """
    first = _mixed(seed.to(tl.uint32))
    mixed = _mixed(_mixed(at.to(tl.uint32) ^ first) + _mixed(first + 1))
    return (mixed >> 8).to(tl.float32) * (1.0 / (1 << 24))


@triton.jit
def _mixed(x):
    """A permutation of 32-bit numbers: each bit of x flips each bit of it about half of the time
    (Wellons, 2018, `lowbias32`)."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _kept_pairs(seeds, site, matrix, place, p, LENGTH: tl.constexpr):
    at = (matrix * LENGTH + place)[:, None] * LENGTH + place[None, :]
    return _kept(tl.load(seeds + site), at, p)


@triton.jit
def _load_qkv(qkv, start, head, place, real, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    dim = tl.arange(0, WIDTH)
    at = ((start + place) * (3 * HEADS) + head)[:, None] * WIDTH + dim[None, :]
    q = tl.load(qkv + at, real[:, None], 0.0)
    k = tl.load(qkv + at + HEADS * WIDTH, real[:, None], 0.0)
    v = tl.load(qkv + at + 2 * HEADS * WIDTH, real[:, None], 0.0)
    return q, k, v


@triton.jit
def _store_mixed(
    out, weights, v, start, head, place, real, HEADS: tl.constexpr, WIDTH: tl.constexpr
):
    mixed = tl.dot(weights.to(v.dtype), v)
    dim = tl.arange(0, WIDTH)
    at = ((start + place) * HEADS + head)[:, None] * WIDTH + dim[None, :]
    tl.store(out + at, mixed, real[:, None])


@triton.jit
def _weights(
    q, k, relative, head, place, real, span, scale, LENGTH: tl.constexpr, RELATIVE: tl.constexpr
):
    """Attention weights of one sentence and head, float32 [LENGTH, LENGTH]."""
    scores = tl.dot(q, tl.trans(k)) * scale
    if RELATIVE:
        at = (head * span + place)[:, None] * span + place[None, :]
        near = (place < span)[:, None] & (place < span)[None, :]
        scores += tl.load(relative + at, near, 0.0)
    return _softmax(scores, real)


@triton.jit
def _softmax(scores, real):
    scores = tl.where(real[None, :], scores, -float("inf"))
    scores = tl.exp(scores - tl.max(scores, 1)[:, None])
    return scores / tl.sum(scores, 1)[:, None]
