// What is asked of every client. A row is {name, package, open(context), lacks: {"cell" or "cell transport": why}}.
// open() connects; it gives {list(), call(tool, arguments, {signal, onProgress}), close()}. list() gives the names of the
// tools, call() all that the client shows its user: for an agent, what its model reads after the call.
import { randomBytes } from 'node:crypto';
import { deflateSync, crc32 } from 'node:zlib';
import { check, pause, short } from '../steps.mjs';
import { openV1 } from './sdks.mjs';

export const CELLS = ['connect', 'list', 'call', 'picture', 'progress', 'cancel'];
const LIMIT_MS = 60_000;

// ---- pictures ----

function chunk(type, data) {
  const head = Buffer.alloc(4);
  const tail = Buffer.alloc(4);
  const body = Buffer.concat([Buffer.from(type), data]);
  head.writeUInt32BE(data.length);
  tail.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, tail]);
}

// A PNG of 8 by 8 random points: nobody has it but who was sent it.
function newPicture() {
  const header = Buffer.from([0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0]);
  const lines = Buffer.concat(Array.from({ length: 8 }, () => Buffer.concat([Buffer.from([0]), randomBytes(24)])));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header), chunk('IDAT', deflateSync(lines)),
    chunk('IEND', Buffer.alloc(0))]);
}

const WORDS_OF_PICTURES = /^image(\/png|_url)?$|^input_image$/;

function saysPicture(object) {
  return Object.entries(object).some(([name, value]) =>
    /^image/.test(name) || (typeof value === 'string' && WORDS_OF_PICTURES.test(value)));
}

// Where the base64 text stands: "picture" as the whole of a member that something around it calls an image, else "text".
function placesOf(value, base64, called = false, found = []) {
  if (typeof value === 'string') {
    if (value.includes(base64)) {
      const whole = value === base64 || value === `data:image/png;base64,${base64}`;
      found.push(whole && called ? 'picture' : 'text');
    }
  } else if (value && typeof value === 'object') {
    const now = called || (!Array.isArray(value) && saysPicture(value));
    for (const one of Object.values(value)) placesOf(one, base64, now, found);
  }
  return found;
}

function checkPicture(told, base64) {
  const places = placesOf(told, base64);
  check(places.includes('picture'), places.length ? `the picture is text: ${short(told)}` : `no picture in ${short(told)}`);
  check(!places.includes('text'), `the picture, and the same as text: ${short(told)}`);
}

// ---- cells ----

const newConversation = () => `table-${randomBytes(8).toString('hex')}`;
const bash = (code, conversationId = newConversation()) => ['run_code', { conversationId, language: 'bash', code }];

async function list({ session }) {
  const names = await session.list();
  for (const want of ['run_code', 'get_run', 'list_files']) check(names.some((one) => one.endsWith(want)), `no ${want} in ${short(names)}`);
}

async function call({ session }) {
  const told = await session.call(...bash('echo $((6 * 7))-times'));
  check(JSON.stringify(told).includes('42-times'), `the output is not in ${short(told)}`);
}

async function picture({ session }) {
  const bytes = newPicture();
  const told = await session.call(...bash(`xxd -r -p <<< ${bytes.toString('hex')} > dots.png; echo drawn`));
  checkPicture(told, bytes.toString('base64'));
}

// Live: half a second before the answer something must have come.
async function progress({ session }) {
  const seen = [];
  await session.call(...bash('echo one; sleep 1; echo two'), { onProgress: () => seen.push(Date.now()) });
  check(seen.length, 'no progress was reported');
  check(Date.now() - seen[0] > 500, `${seen.length} notes, the first ${Date.now() - seen[0]} ms before the answer`);
}

async function cancel({ session, control }) {
  const conversation = newConversation();
  const ask = async (name, args) => (await control.call(name, args)).structuredContent;
  const running = async () => (await ask('list_runs', { conversationId: conversation })).runs.filter((run) => run.status === 'running');
  const printed = async (run) => run && (await ask('get_run', { runId: run.runId, sinceByte: 0, waitMs: 0 })).newOutput.includes('started');
  const controller = new AbortController();
  const pending = session.call(...bash('echo started; sleep 77', conversation), { signal: controller.signal }).then(
    (told) => `answered ${short(told)}`, () => null);
  try {
    await untilAsync(async () => printed((await running())[0]), 40_000, 'the program runs');
    controller.abort();
    await untilAsync(async () => !(await running()).length, 10_000, 'the program ends, which was cancelled');
    const answer = await Promise.race([pending, pause(10_000).then(() => 'goes on')]);
    check(answer === null, `the call ${answer}`);
  } finally {
    for (const run of await running()) await control.call('cancel_run', { runId: run.runId });
  }
}

async function untilAsync(probe, ms, what) {
  let answer = false;
  for (const end = Date.now() + ms; !answer && Date.now() < end; await pause(50)) answer = await probe();
  if (!answer) throw new Error(`not within ${ms} ms: ${what}`);
}

const WORK = { list, call, picture, progress, cancel };

async function inTime(work) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}

// Calls tell(cell, state, why) for each cell.
export async function cellsOf(row, context, control, tell) {
  const lacking = (cell) => row.lacks?.[context.transport] ?? row.lacks?.[cell] ?? row.lacks?.[`${cell} ${context.transport}`];
  const wanted = CELLS.filter((cell) => !lacking(cell));
  const things = {};
  for (const cell of CELLS.filter(lacking)) tell(cell, '-', lacking(cell));
  for (const cell of wanted) {
    try {
      if (cell === 'connect') {
        things.session = await inTime(row.open(context));
        things.control = await inTime(openV1(control));
      } else {
        check(things.control, 'not connected');
        await inTime(WORK[cell](things));
      }
      tell(cell, 'ok');
    } catch (problem) {
      tell(cell, 'FAILED', String(problem?.message ?? problem));
    }
  }
  for (const one of Object.values(things)) await inTime(one.close()).catch(() => {});
}
