// What the clients' sessions are made of: steps that print "ok STEP" or "FAILED STEP: why".
const STEP_LIMIT_MS = 90_000;
let failed = 0;

export const failures = () => failed;

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export const short = (value) => JSON.stringify(value)?.slice(0, 400);
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(probe, ms, what) {
  for (const end = Date.now() + ms; Date.now() < end; await pause(20)) if (await probe()) return;
  throw new Error(`not within ${ms} ms: ${what}`);
}

export async function step(name, work) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${STEP_LIMIT_MS} ms`)), STEP_LIMIT_MS);
  });
  try {
    await Promise.race([work(), limit]);
    console.log(`ok ${name}`);
  } catch (problem) {
    failed += 1;
    console.log(`FAILED ${name}: ${String(problem?.message ?? problem).replaceAll('\n', ' ').slice(0, 800)}`);
  } finally {
    clearTimeout(timer);
  }
}
