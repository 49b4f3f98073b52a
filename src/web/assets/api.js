// Requests to the API of this origin, with the token of the session.

const KEY = 'workerctl.session';
let session = null;
try {
  session = JSON.parse(localStorage.getItem(KEY));
} catch {
  /* as if nobody were there */
}
const leaving = new Set();

export const current = () => session;
export const isAdmin = () => session?.role === 'admin' && !session.read_only;
/** Is told when a session begins or ends. */
export const onSession = f => (leaving.add(f), () => leaving.delete(f));
export const setSession = next => {
  session = next;
  if (next) localStorage.setItem(KEY, JSON.stringify(next));
  else localStorage.removeItem(KEY);
  leaving.forEach(f => f(next));
};

/** A refusal of the API: `{kind, code, message, hints, details}`. */
export class Refusal extends Error {
  constructor(status, told) {
    super(told.message || `the answer has the status ${status}`);
    Object.assign(this, {status, hints: [], details: []}, told);
  }
}
const silent = () =>
  new Refusal(0, {
    kind: 'unreachable',
    code: 'unreachable',
    message: 'the daemon does not answer',
    hints: ['`workerctl daemon` starts it'],
  });

export const query = values => {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values || {})) if (value != null && value !== '') q.set(name, value);
  const text = q.toString();
  return text && '?' + text;
};
export const id = encodeURIComponent;

export const authorised = () => (session ? {Authorization: `Bearer ${session.token}`} : {});

/** The response, where it is a good one. */
export async function ask(path, options = {}) {
  const token = session?.token;
  let response;
  try {
    response = await fetch('/v1/' + path, {cache: 'no-store', ...options, headers: {...authorised(), ...options.headers}});
  } catch (error) {
    throw error.name === 'AbortError' ? error : silent();
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  // An answer to an older session ends no newer one.
  if (response.status === 401 && token && token === session?.token) setSession(null);
  throw new Refusal(response.status, told);
}
export const get = async (path, values, options) => (await ask(path + query(values), options)).json();
export const post = async (path, body = {}) =>
  (await ask(path, {method: 'POST', body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}})).json();

/** Where the list goes on: values of the query of `Link: <…>; rel="next"`, or null. */
export const next = response => {
  const found = /<([^>]*)>\s*;\s*rel="?next"?/.exec(response.headers.get('Link') || '');
  return found && Object.fromEntries(new URL(found[1], location.origin).searchParams);
};
export const page = async (path, values, options) => {
  const response = await ask(path + query(values), options);
  return {rows: await response.json(), next: next(response), lines: +response.headers.get('Workerctl-Lines') || 0};
};

/** Hands a file to the browser; a link alone could not carry the token. */
export async function download(path, name) {
  const blob = await (await ask(path)).blob(),
    address = URL.createObjectURL(blob),
    link = document.createElement('a');
  link.href = address;
  link.download = name.replace(/[\\/:\0-\x1f\u202a-\u202e\u2066-\u2069]/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A key of its own for each thing that is to be done once; `randomUUID` is not there without TLS. */
export const onceKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('');
