// A run from its start to its end: a call that waits a moment, then get_run for what goes on, so that a reload finds it.
import { CallError, callTool, healthy } from "./mcp.js";
import { Screen } from "./screen.js";

const FIRST_WAIT_MS = 1000; // until then closing the stream cancels; later the run has a handle
const AWAY_MS = 2000; // between two looks at a server that is away
const RAW_MAX = 64 << 20; // characters of output that are kept to be saved

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** phase: starting, queued, running, ended, failed. It tells its watchers: onChange of each change, onOutput(text) of output. */
export class Run {
  constructor(order) {
    this.order = order; // language, code, conversation, and what args() reads
    this.phase = "starting";
    this.screen = new Screen();
    this.startedAt = Date.now();
    this.runId = order.runId ?? null;
    this.result = null;
    this.error = null;
    this.position = 0;
    this.watchers = new Set();
    this.abort = new AbortController();
    this.forgetOutput();
  }

  forgetOutput() {
    this.screen.clear();
    this.raw = [];
    this.rawLength = 0;
    this.seen = 0; // bytes of output
    this.gaps = 0; // bytes that came too fast
  }

  /** watcher: {onChange, onOutput}. Returns what ends it. */
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  #tell(what, text) {
    for (const watcher of this.watchers) watcher[what]?.(text);
  }

  get isOver() {
    return this.phase === "ended" || this.phase === "failed";
  }

  args() {
    const { language, code, conversation, network, session, environment, args, stdin, timeoutMs } = this.order;
    const found = { language, code, conversationId: conversation, waitMs: FIRST_WAIT_MS };
    if (network) found.network = true;
    if (session) found.session = true;
    if (timeoutMs) found.timeoutMs = timeoutMs;
    if (!session && environment && Object.keys(environment).length) found.environment = environment;
    if (!session && args?.length) found.args = args;
    if (!session && stdin) found.stdin = stdin;
    return found;
  }

  /** Runs, or follows the run that order.runId names. */
  async begin() {
    try {
      const answer = this.runId ? null : await this.#start();
      this.#finish(answer && answer.data.status !== "running" ? answer : await this.#follow(answer));
    } catch (problem) {
      this.#fail(problem);
    }
  }

  /** What is still in the queue after the first wait is refused: then it waits as long as the server lets it. */
  async #start() {
    const { waitMs, ...patient } = this.args();
    try {
      return await this.#call("run_code", { ...patient, waitMs });
    } catch (problem) {
      if (problem.kind !== "busy" || this.position === 0) throw problem;
      return this.#call("run_code", patient);
    }
  }

  async #follow(answer) {
    if (answer) {
      this.runId = answer.data.runId;
      this.#to("running");
    }
    for (;;) {
      const more = await this.#call("get_run", { runId: this.runId }).catch((problem) => this.#comeBack(problem));
      if (more && more.data.status !== "running") return more;
    }
  }

  /** The run goes on while the connection is gone. */
  async #comeBack(problem) {
    if (problem.kind !== "away") throw problem;
    do await new Promise((resolve) => setTimeout(resolve, AWAY_MS)); while (!(await healthy()));
  }

  #call(name, args) {
    let at = 0; // where this stream is in the output: get_run begins at its first byte
    return callTool(name, args, {
      signal: this.abort.signal,
      onProgress: ({ message, _meta: meta }) => {
        if (!meta) return this.phase === "starting" && this.#to("running");
        if (meta["sandcgi/position"]) {
          this.position = meta["sandcgi/position"];
          return this.#to("queued");
        }
        const next = meta["sandcgi/nextByte"];
        if (this.phase !== "running") this.#to("running");
        if (next > this.seen) this.#take(message, meta, at, next);
        at = next;
      },
    });
  }

  #take(text, meta, at, next) {
    if (meta["sandcgi/skipped"]) {
      const lost = next - Math.max(at, this.seen);
      this.gaps += lost;
      this.screen.note(gapNote(lost));
    } else {
      const known = this.seen - at;
      const whole = known > 0 ? encoder.encode(text) : null;
      const piece = whole && whole.length === next - at ? decoder.decode(whole.subarray(known)) : text;
      this.screen.write(piece, meta["sandcgi/stream"]);
      this.rawLength += piece.length;
      if (this.rawLength <= RAW_MAX) this.raw.push(piece);
    }
    this.seen = next;
    this.#tell("onOutput", text);
  }

  #to(phase) {
    this.phase = phase;
    this.#tell("onChange");
  }

  #finish({ data, words, content }) {
    const { truncation } = data;
    if (data.output !== undefined && truncation && (this.seen !== truncation.output.total || this.gaps)) this.#showKept(data, truncation);
    this.result = data;
    this.words = words;
    this.content = content;
    this.#to("ended");
    this.#tell("onOutput", "");
  }

  /** What the server kept, where less of it came while it was printed. */
  #showKept(data, truncation) {
    if (truncation.output.truncated && this.seen > truncation.output.kept) return this.#showTail(data.output, truncation.output);
    this.forgetOutput();
    for (const [text, stream] of told(data)) this.screen.write(text, stream);
    this.raw = [data.output];
    this.gaps = truncation.output.total - truncation.output.kept;
    this.seen = truncation.output.total;
    return undefined;
  }

  /** The end of a long output, of which more came while it was printed than the server keeps. */
  #showTail(kept, { kept: bytes, total }) {
    const tail = encoder.encode(kept).slice(-Math.floor(bytes / 2));
    const from = total - tail.length;
    if (from > this.seen) {
      this.gaps += from - this.seen;
      this.screen.note(gapNote(from - this.seen));
    }
    const piece = decoder.decode(tail.subarray(Math.max(0, this.seen - from)));
    this.screen.write(piece);
    this.raw.push(piece);
    this.rawLength += piece.length;
    this.seen = total;
  }

  #fail(problem) {
    this.error = problem instanceof CallError ? problem : new CallError("failed", String(problem));
    if (this.error.kind === "cancelled") {
      this.result = { status: "cancelled", durationMs: Date.now() - this.startedAt, files: [] };
      return this.#to("ended");
    }
    return this.#to("failed");
  }

  /** All output that came, when none is missing. */
  get wholeOutput() {
    return this.gaps === 0 && this.rawLength <= RAW_MAX ? this.raw : null;
  }

  async cancel() {
    if (!this.runId) return this.abort.abort();
    try {
      await callTool("cancel_run", { runId: this.runId });
    } catch (problem) {
      if (problem.kind !== "argument") throw problem; // it has ended by itself
    }
    return undefined;
  }
}

const gapNote = (bytes) => `(${bytes.toLocaleString("en")} bytes came too fast to be shown here)`;

/** The lines of output with their streams, as far as stdout and stderr tell. */
function told({ output, stdout = "", stderr = "" }) {
  if (!stderr) return [[output, "stdout"]];
  if (!stdout) return [[output, "stderr"]];
  const errors = new Map();
  for (const line of stderr.split("\n")) errors.set(line, (errors.get(line) ?? 0) + 1);
  const outs = new Set(stdout.split("\n"));
  return output.split(/(?<=\n)/).map((line) => {
    const text = line.replace(/\n$/, "");
    const left = errors.get(text) ?? 0;
    if (left > 0) errors.set(text, left - 1);
    return [line, left > 0 && !outs.has(text) ? "stderr" : "stdout"];
  });
}
