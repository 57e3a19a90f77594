// The tabs of the editor. They outlive a reload, and end with the browser's tab, as the session does:
// a statement may hold what is nobody else's business.

import { keep, kept } from "../core/kept.js";

const DOCUMENTS_MAX = 30;
const TEXT_MAX = 200_000;

export class Documents {
  constructor(storage = sessionStorage) {
    this.storage = storage;
    const found = kept(storage, "documents", null);
    this.all = Array.isArray(found?.all) && found.all.length > 0 ? found.all : [blank(1)];
    this.current = this.all.find((each) => each.id === found?.current) ?? this.all[0];
  }

  save() {
    const all = this.all.map(({ id, title, text, params }) => ({
      id,
      title,
      text: text.slice(0, TEXT_MAX),
      params,
    }));
    keep(this.storage, "documents", { all, current: this.current.id });
  }

  /** Open another tab; null if there are too many. */
  open(text = "") {
    if (this.all.length >= DOCUMENTS_MAX) return null;
    const id = Math.max(...this.all.map((each) => each.id)) + 1;
    this.current = { ...blank(id), text };
    this.all.push(this.current);
    this.save();
    return this.current;
  }

  close(document) {
    const at = this.all.indexOf(document);
    this.all.splice(at, 1);
    if (this.all.length === 0) this.all.push(blank(1));
    if (this.current === document) this.current = this.all[Math.max(0, at - 1)];
    this.save();
  }
}

function blank(id) {
  return { id, title: `Query ${id}`, text: "", params: {} };
}
