// What a person does with a browser at an authorization server: follows redirects, fills the forms, keeps cookies, until it is sent back
// to the client.
import { check } from './steps.mjs';

const HTML = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&#x2F;': '/' };
const unescaped = (text) => text.replace(/&(?:amp|lt|gt|quot|#39|#x2F);/g, (entity) => HTML[entity]);
const STEPS_MAX = 20;

// The fields of the page's form: hidden ones as they are, others as answers has them.
function filled(page, answers) {
  const fields = new URLSearchParams();
  for (const [tag, name] of page.matchAll(/<(?:input|button)\b[^>]*\bname="(\w+)"[^>]*>/g)) {
    const value = answers[name] ?? /\bvalue="([^"]*)"/.exec(tag)?.[1];
    if (value !== undefined) fields.set(name, unescaped(value));
  }
  return fields;
}

// The address that the browser goes to next, and how. null: the page leads nowhere.
function onward(answer, url, page, answers) {
  const target = answer.headers.get('location') ?? /http-equiv="refresh" content="0;url=([^"]*)"/.exec(page)?.[1];
  if (target) return { url: new URL(unescaped(target), url) };
  const action = /<form\b[^>]*\baction="([^"]*)"/.exec(page)?.[1];
  return action === undefined ? null : { url: new URL(unescaped(action), url), body: filled(page, answers) };
}

// answers: { FIELD: what is typed, or the button's value }. back: begin of the client's redirect URI. Gives the URL that the client gets.
export async function visit(start, answers, back) {
  const cookies = new Map();
  for (let next = { url: start }, n = 0; n < STEPS_MAX; n += 1) {
    const { url, body } = next;
    if (url.href.startsWith(back)) return url;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(url, { method: body ? 'POST' : 'GET', body, redirect: 'manual', headers: { cookie, ...(body && { origin: url.origin }) } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const page = await answer.text();
    next = onward(answer, url, page, answers);
    check(next, `${url.pathname} leads nowhere: ${answer.status} ${page.slice(-400)}`);
  }
  throw new Error(`not back at ${back} after ${STEPS_MAX} pages`);
}
