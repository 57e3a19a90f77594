// What the page keeps in the browser. All names begin with "qserver.", values are JSON, and a
// storage that is full, off or damaged is as good as an empty one.

export function keep(storage, name, value) {
  try {
    storage.setItem(`qserver.${name}`, JSON.stringify(value));
  } catch {
    // Full or off: the page works, and forgets.
  }
}

export function kept(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(`qserver.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Forget everything under names that begin so. */
export function forget(storage, prefix) {
  for (const name of Object.keys(storage)) {
    if (name.startsWith(`qserver.${prefix}`)) storage.removeItem(name);
  }
}
