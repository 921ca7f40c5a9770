// Requests to the server, within its limits.

// Small enough to show progress, large enough that the server can fill its batches.
const AT_ONCE = 256;
const LONGEST_WAIT = 60;
const SHOWN = 60;

/** The server refuses the request; retrying does not help. */
export class Refused extends Error {}

/** The server is unreachable or failed; retrying may help. */
export class Unanswered extends Error {}

export class Server {
  #key = null;
  #askForKey;
  #info = null;

  /** askForKey: an async function of whether a key was refused; returns a key, or null */
  constructor(askForKey) {
    this.#askForKey = askForKey;
  }

  async info(watch) {
    this.#info = await this.#ask("info", undefined, watch);
    return this.#info;
  }

  /** Probabilities of the classes, or a grade, for each input: a text, or a list of two. */
  async predict(task, inputs, { mode = null, watch }) {
    const answers = await this.#inParts(inputs, task.name, watch, (part) =>
      this.#ask(`predict/${encodeURIComponent(task.name)}`, { inputs: part, mode: mode }, watch, part),
    );
    if (answers.some(({ truncated }) => truncated > 0)) watch.cut(this.#info.tercet.limits.tokens);
    return answers.flatMap(({ results }) => results).map((one) => one.probabilities ?? one);
  }

  /** Vectors of length 1, each a Float32Array. */
  async embed(texts, { watch }) {
    const settings = { model: this.#info.model_id, encoding_format: "base64" };
    const answers = await this.#inParts(texts, "vectors", watch, (part) =>
      this.#ask("v1/embeddings", { input: part, ...settings }, watch, part),
    );
    return answers.flatMap(({ data }) => data).map(({ embedding }) => floats(embedding));
  }

  /** The rows of the index nearest to a query, best first. */
  async search(query, { top, watch }) {
    const { results } = await this.#ask("search", { query, top }, watch, [query]);
    return results[0];
  }

  async #inParts(inputs, what, { progress }, send) {
    const answers = [];
    let done = 0;
    for (const part of parts(inputs, this.#info.tercet.limits)) {
      if (part.length < inputs.length) progress(what, done, inputs.length);
      answers.push(await send(part));
      done += part.length;
    }
    return answers;
  }

  /** Send a request, and retry while the server is busy or needs a key. */
  async #ask(path, body, watch, inputs = []) {
    for (;;) {
      const answer = await this.#send(path, body, watch.signal);
      if (answer.status === 429) {
        await wait(Number(answer.headers.get("Retry-After")) || 1, watch);
      } else if (answer.status === 401) {
        await this.#takeKey();
      } else {
        return read(answer, inputs);
      }
    }
  }

  async #send(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    if (this.#key !== null) headers.Authorization = `Bearer ${this.#key}`;
    const request = body === undefined ? { headers, signal } : { method: "POST", body: JSON.stringify(body), headers, signal };
    try {
      return await fetch(path, request);
    } catch (error) {
      return orGone(error);
    }
  }

  async #takeKey() {
    this.#key = await this.#askForKey(this.#key !== null);
    if (this.#key === null) throw new Refused("The server needs a key.");
  }
}

function orGone(error) {
  if (error.name === "AbortError") throw error;
  throw new Unanswered("The server is unreachable: check that tercet serve is running.");
}

/** Inputs in parts that fit into a request, by number, tokens and bytes. */
function* parts(inputs, { inputs: most, tokens, queue_tokens: queued, body }) {
  const texts = Array.isArray(inputs[0]) ? 2 : 1;
  const longest = Math.max(1, Math.min(AT_ONCE, most, Math.floor(queued / (texts * tokens))));
  let part = [];
  let bytes = 0;
  for (const input of inputs) {
    const size = new Blob([JSON.stringify(input)]).size + 1;
    if (part.length > 0 && (part.length === longest || bytes + size > body / 2)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(input);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

async function wait(seconds, { waiting, signal }) {
  for (let left = Math.min(seconds, LONGEST_WAIT); left > 0; left -= 1) {
    waiting(left);
    await second(signal);
  }
}

function second(signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

async function read(answer, inputs) {
  const content = await answer.json().catch(orGone);
  if (answer.ok) return content;
  const { error } = content;
  const reason = error.message ?? error;
  if (answer.status >= 500) throw new Unanswered(reason);
  throw new Refused(`${reason}${atFault(inputs, content.field ?? error.param)}`);
}

/** The text that a field such as `inputs.3` refers to. */
function atFault(inputs, field) {
  const text = [inputs[/\.(\d+)/.exec(field ?? "")?.[1]]].flat().join(" / ");
  if (!text) return "";
  return ` The text is: ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`;
}

/** Base64 of little-endian float32. */
function floats(base64) {
  return new Float32Array(Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)).buffer);
}
