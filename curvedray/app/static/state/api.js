// The server's calls (../API.md): JSON in and out, and every failure as one sentence.

export class ApiError extends Error {
  constructor(status, error) {
    super(error?.words || `The server answered ${status}.`);
    this.status = status;
    this.detail = error ?? {};
  }
}

async function answered(response) {
  if (response.ok) return response;
  let error = null;
  try {
    error = (await response.json()).error;
  } catch {
    // The sentence then says the status alone.
  }
  throw new ApiError(response.status, error);
}

async function send(method, address, { body, signal, type } = {}) {
  const json = body !== undefined && type === undefined;
  let response;
  try {
    response = await fetch(address, {
      method,
      signal,
      headers: body === undefined ? {} : { 'Content-Type': json ? 'application/json' : type },
      body: json ? JSON.stringify(body) : body,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { words: 'The studio does not answer. Is `curvedray app` still running?' });
  }
  return answered(response);
}

const json = async (response) => (await response).json();
const name = encodeURIComponent;

export const api = {
  start: () => json(send('GET', '/api/start')),
  path: (body, signal) => json(send('POST', '/api/path', { body, signal })),
  keys: (path, count) => json(send('POST', '/api/keys', { body: { path, count } })),
  describe: (body) => json(send('POST', '/api/describe', { body })),
  scene: (body, signal) => json(send('POST', '/api/scene', { body, signal })),
  check: (body) => json(send('POST', '/api/check', { body })),
  picture: (body, signal) => send('POST', '/api/picture', { body, signal }),
  map: (body) => json(send('POST', '/api/map', { body })),
  importCameras: (body) => json(send('POST', '/api/import', { body })),
  exportCameras: (body) => send('POST', '/api/export', { body }),
  film: (body) => json(send('POST', '/api/takes', { body })),
  again: (take, changes) => json(send('POST', `/api/takes/${take}/again`, { body: { changes } })),
  score: (body) => json(send('POST', '/api/score', { body })),
  transfer: (body) => json(send('POST', '/api/transfer', { body })),
  takes: (before) => json(send('GET', `/api/takes?limit=50${before ? `&before=${before}` : ''}`)),
  take: (take) => json(send('GET', `/api/takes/${take}`)),
  removeTake: (take) => json(send('DELETE', `/api/takes/${take}`)),
  projects: () => json(send('GET', '/api/projects')),
  project: (called) => json(send('GET', `/api/projects/${name(called)}`)),
  saveProject: (called, body) => json(send('PUT', `/api/projects/${name(called)}`, { body })),
  removeProject: (called) => json(send('DELETE', `/api/projects/${name(called)}`)),
  doctor: () => json(send('GET', '/api/doctor')),
  upload: (kind, file, into = null) =>
    json(
      send('PUT', `/api/uploads/${kind}?name=${name(file.name)}${into ? `&into=${into}` : ''}`, {
        body: file,
        type: 'application/octet-stream',
      }),
    ),
  file: (take, called) => `/api/takes/${take}/files/${name(called)}`,
};

/** What the server noted beside a file: `Studio-Notes`, a JSON list. */
export function notesOf(response) {
  const header = response.headers.get('Studio-Notes');
  return header ? JSON.parse(header) : [];
}

/** Hand a file to the person: the browser's own download. */
export function saveBlob(blob, called) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = called;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The name that a response gives its file. */
export function nameOf(response, otherwise) {
  const match = /filename="?([^";]+)"?/.exec(response.headers.get('Content-Disposition') ?? '');
  return match ? match[1] : otherwise;
}
