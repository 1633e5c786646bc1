// What the person has answered so far, and how to take it back. It is kept in the browser, where that is allowed.

const KEY = `gpssl-labels-${given.fingerprint}`;
const nRows = given.rows.length;

// Whether this browser lets a page keep something. Answers are not written for that: another window may be about to write newer ones.
function mayKeep() {
  try {
    window.localStorage.setItem(`${KEY}-may-keep`, "");
    window.localStorage.removeItem(`${KEY}-may-keep`);
    return true;
  } catch {
    return false;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

class Answers {
  constructor() {
    this.of = given.rows.map(() => null); // of each row: nothing yet, { label } or { isSkipped: true }
    this.history = []; // what each step replaced: { place, before }
    this.current = 0; // nRows: the summary
    this.nSaved = 0; // labels that the last file had
    this.isKept = mayKeep();
    if (this.isKept) this.load();
  }

  // Take over what the browser has kept; what is not ours is ignored.
  load() {
    const kept = parsed(window.localStorage.getItem(KEY));
    if (!Array.isArray(kept?.of) || kept.of.length !== nRows || !Array.isArray(kept.history)) return;
    const { of, history, current, nSaved } = kept;
    Object.assign(this, { of, history, current: Math.min(Math.max(Number(current) || 0, 0), nRows), nSaved: Number(nSaved) || 0 });
  }

  keep() {
    try {
      const { of, history, current, nSaved } = this;
      window.localStorage.setItem(KEY, JSON.stringify({ of, history, current, nSaved }));
      return true;
    } catch {
      return false;
    }
  }

  // Answer the row that is shown, and go on to the next one without an answer.
  give(answer) {
    this.history.push({ place: this.current, before: this.of[this.current] });
    this.of[this.current] = answer;
    this.nSaved = -1;
    const later = this.of.findIndex((one, place) => one === null && place > this.current);
    const open = later >= 0 ? later : this.of.indexOf(null);
    this.go(open >= 0 ? open : nRows);
  }

  // Take the last answer back, and show its row.
  undo() {
    const step = this.history.pop();
    if (!step) return null;
    this.of[step.place] = step.before;
    this.nSaved = -1;
    this.go(step.place);
    return step.place;
  }

  go(place) {
    this.current = Math.min(Math.max(place, 0), nRows);
    this.isKept = this.keep();
  }

  saved() {
    this.nSaved = this.labeled.length;
    this.isKept = this.keep();
  }

  // Places of rows with a label, of skipped ones, and the number of both.
  get labeled() {
    return this.of.flatMap((answer, place) => (answer && !answer.isSkipped ? [place] : []));
  }

  get skipped() {
    return this.of.flatMap((answer, place) => (answer?.isSkipped ? [place] : []));
  }

  get nDone() {
    return this.labeled.length + this.skipped.length;
  }

  get isSaved() {
    return this.labeled.length === 0 || this.nSaved === this.labeled.length;
  }

  // The classes that labels have: those of the table in their order, then those that the person has added.
  get classes() {
    const used = this.labeled.map((place) => this.of[place].label);
    return [...new Set([...given.classes, ...used])];
  }

  csv() {
    const lines = this.labeled.map((place) => [given.rows[place].row, given.rows[place].checksum, this.of[place].label]);
    return [given.header, ...lines].map((cells) => `${cells.map(textCell).join(",")}\r\n`).join("");
  }
}

const answers = new Answers();
