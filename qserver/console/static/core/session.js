// Who is signed in. An API key is exchanged for a session at once and then forgotten: it is not
// stored, and no variable of the page holds it. The token of the session lives in sessionStorage:
// it survives a reload, ends with the browser's tab, and no other tab can read it.

const NAME = "qserver.session";
const REFRESHED_BEFORE_MS = 12 * 3600 * 1000;

export class Session {
  constructor(storage = sessionStorage) {
    this.storage = storage;
    this.record = this.#stored();
  }

  get token() {
    return this.record?.token ?? null;
  }

  may(scope) {
    const scopes = this.record?.scopes ?? [];
    return scopes.includes(scope) || scopes.includes("admin");
  }

  /** Exchange a key for a session. Raises ServerError. */
  async begin(api, key) {
    const answer = await api.post("/v1/session", {}, { token: key });
    this.#keep(answer.session);
  }

  /** A session lives a day; one that is used is given another. */
  async refresh(api) {
    if (Date.parse(this.record.expires_at) - Date.now() > REFRESHED_BEFORE_MS) return;
    const { session } = await api.post("/v1/session/refresh");
    this.#keep({ ...this.record, ...session });
  }

  /** End it at the server and here. Whatever the server says, the token is gone from here. */
  async end(api) {
    try {
      await api.call("DELETE", "/v1/session");
    } finally {
      this.forget();
    }
  }

  forget() {
    this.record = null;
    this.storage.removeItem(NAME);
  }

  #keep(record) {
    this.record = record;
    this.storage.setItem(NAME, JSON.stringify(record));
  }

  #stored() {
    try {
      const record = JSON.parse(this.storage.getItem(NAME));
      return record && Date.parse(record.expires_at) > Date.now() ? record : null;
    } catch {
      return null; // no storage, or what is there is not ours
    }
  }
}
