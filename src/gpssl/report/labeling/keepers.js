// Where answers stay between visits. Chromium may hand a page that is a file an older localStorage, or an empty one, when a person comes
// back to it. So each step also goes to sessionStorage, which belongs to the tab, and to IndexedDB, which answers late but says when a step
// has been written. Of what the three have, the newest counts.

const KEY = `gpssl-labels-${given.fingerprint}`;
const STORAGES = ["localStorage", "sessionStorage"];
const STORE = "answers";

// Whether what a keeper had are answers to the rows of this page.
function isOurs(kept) {
  return Array.isArray(kept?.of) && kept.of.length === given.rows.length && Array.isArray(kept.history);
}

// Kept answers from their text; null where it is none of ours.
function parsed(text) {
  try {
    const kept = JSON.parse(text);
    return isOurs(kept) ? { ...kept, when: Number(kept.when) || 0 } : null;
  } catch {
    return null;
  }
}

// Whether this browser lets a page keep something. Answers are not written for that: another window may be about to write newer ones.
function mayStore() {
  try {
    window.localStorage.setItem(`${KEY}-may-keep`, "");
    window.localStorage.removeItem(`${KEY}-may-keep`);
    return true;
  } catch {
    return false;
  }
}

function stored(name) {
  try {
    return parsed(window[name].getItem(KEY));
  } catch {
    return null; // a browser may forbid even to look
  }
}

function store(name, text) {
  try {
    window[name].setItem(KEY, text);
    return true;
  } catch {
    return false;
  }
}

class Database {
  constructor() {
    this.isWorking = false; // whether it has answered, and not refused since
    this.opened = new Promise((resolve, reject) => {
      const request = window.indexedDB.open("gpssl-labels", 1);
      request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
      request.addEventListener("success", () => resolve(request.result));
      request.addEventListener("error", (event) => {
        event.preventDefault(); // the page says it, the console need not
        reject(request.error);
      });
    });
    this.opened.catch(() => null); // who reads or writes is told
  }

  // Do something with the answers, and return its request's result once all has been written; undefined where that is refused.
  async done(mode, act) {
    try {
      const transaction = (await this.opened).transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.commit(); // at once: the person may be leaving
      await new Promise((resolve, reject) => {
        transaction.addEventListener("complete", resolve);
        transaction.addEventListener("abort", () => reject(transaction.error));
      });
      this.isWorking = true;
      return request.result;
    } catch {
      this.isWorking = false;
      return undefined;
    }
  }

  async read() {
    return parsed(await this.done("readonly", (kept) => kept.get(KEY)));
  }

  async write(text) {
    return (await this.done("readwrite", (kept) => kept.put(text, KEY))) !== undefined;
  }
}

const database = new Database();
