// Arithmetic on vectors of length 1, each a Float32Array.

const ROWS_AT_ONCE = 64;
const ROUNDS = 200;
const STILL = 1e-10;

export function dot(a, b) {
  let sum = 0;
  for (let place = 0; place < a.length; place += 1) sum += a[place] * b[place];
  return sum;
}

/**
 * Each vector's nearest other, and the closest pairs of all, by cosine.
 * Yields to the browser between rows; stops on the signal.
 */
export async function neighbours(vectors, { pairs, signal }) {
  const nearest = vectors.map(() => ({ place: -1, cosine: -Infinity }));
  const closest = [];
  const meet = (from, to, cosine) => {
    if (cosine > nearest[from].cosine) nearest[from] = { place: to, cosine };
  };
  for (let first = 0; first < vectors.length; first += 1) {
    if (first % ROWS_AT_ONCE === 0) await breath(signal);
    for (let second = first + 1; second < vectors.length; second += 1) {
      const cosine = dot(vectors[first], vectors[second]);
      meet(first, second, cosine);
      meet(second, first, cosine);
      keep(closest, { first, second, cosine }, pairs);
    }
  }
  return { nearest, closest };
}

function keep(closest, pair, most) {
  if (closest.length === most && pair.cosine <= closest.at(-1).cosine) return;
  const place = closest.findIndex((other) => other.cosine < pair.cosine);
  closest.splice(place < 0 ? closest.length : place, 0, pair);
  if (closest.length > most) closest.pop();
}

function breath(signal) {
  return new Promise((resolve) => setTimeout(resolve)).then(() => signal.throwIfAborted());
}

/** The first two principal components: each vector's coordinates, and their shares of variance. */
export function plane(vectors) {
  const centred = centre(vectors);
  const total = centred.reduce((sum, row) => sum + dot(row, row), 0);
  const places = vectors.map(() => [0, 0]);
  const shares = [0, 0];
  for (const axis of [0, 1]) {
    const direction = strongestDirection(centred);
    centred.forEach((row, number) => {
      const along = dot(row, direction);
      places[number][axis] = along;
      for (let place = 0; place < row.length; place += 1) row[place] -= along * direction[place];
      shares[axis] += total > 0 ? (along * along) / total : 0;
    });
  }
  return { places, shares };
}

function centre(vectors) {
  const mean = new Float64Array(vectors[0].length);
  for (const row of vectors) row.forEach((value, place) => (mean[place] += value / vectors.length));
  return vectors.map((row) => Float64Array.from(row, (value, place) => value - mean[place]));
}

/** By power iteration from the longest row, so that equal vectors give the same plane. */
function strongestDirection(rows) {
  let direction = unit(rows.reduce((longest, row) => (dot(row, row) > dot(longest, longest) ? row : longest)));
  for (let round = 0; round < ROUNDS; round += 1) {
    const next = new Float64Array(direction.length);
    for (const row of rows) {
      const along = dot(row, direction);
      for (let place = 0; place < row.length; place += 1) next[place] += along * row[place];
    }
    const before = direction;
    direction = unit(next);
    if (1 - dot(before, direction) < STILL) break;
  }
  return direction;
}

function unit(row) {
  const length = Math.sqrt(dot(row, row));
  return length > 0 ? Float64Array.from(row, (value) => value / length) : Float64Array.from(row);
}
