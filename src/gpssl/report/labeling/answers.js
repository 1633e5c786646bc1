// What the person has answered so far, and how to take it back. It is kept in the browser, where that is allowed: see keepers.js.

const nRows = given.rows.length;

class Answers {
  constructor(onKept) {
    this.of = given.rows.map(() => null); // of each row: nothing yet, { label } or { isSkipped: true }
    this.history = []; // what each step replaced: { place, before }
    this.current = 0; // nRows: the summary
    this.nSaved = 0; // labels that the last file had
    this.when = -1; // rises with each step: the time, also where a clock was set back
    this.began = -1; // the same of what was last taken over
    this.meanwhile = new Set(); // places answered before the database has told
    this.isKept = mayStore();
    this.isSafe = true; // whether the database has the last step
    this.isCaughtUp = false; // whether the database has told what it has
    this.onKept = onKept;
    for (const name of STORAGES) this.adopt(stored(name));
  }

  // Take over what was kept, if it is newer, and return whether it was.
  adopt(kept) {
    if (!kept || kept.when <= this.when) return false;
    const { of, history, current, nSaved, when } = kept;
    Object.assign(this, { of, history, current: Math.min(Math.max(Number(current) || 0, 0), nRows), nSaved: Number(nSaved) || 0 });
    this.when = this.began = when;
    this.meanwhile.clear();
    return true;
  }

  // Adopt what the database has, and return whether it was newer. What the person did before it first told goes on top.
  async catchUp() {
    const kept = await database.read();
    const isLate = !this.isCaughtUp && this.when > this.began; // the person was quicker
    this.isCaughtUp = true;
    this.isKept ||= database.isWorking;
    if (!isLate) return this.adopt(kept);
    if (!kept || kept.when <= this.began) return false;
    const { of, when } = this;
    const own = [...this.meanwhile];
    this.when = this.began;
    this.adopt(kept);
    this.when = Math.max(when, kept.when);
    for (const place of own) this.put(place, of[place]);
    this.go(this.of[this.current] === null ? this.current : this.nextOpen());
    return true;
  }

  keep() {
    this.when = Math.max(Date.now(), this.when + 1);
    const { of, history, current, nSaved, when } = this;
    const text = JSON.stringify({ of, history, current, nSaved, when });
    const [isStored] = STORAGES.map((name) => store(name, text));
    this.isKept = isStored || database.isWorking;
    this.isSafe = false;
    this.writeDown(text, when, isStored);
  }

  async writeDown(text, when, isStored) {
    const isWritten = await database.write(text);
    if (this.when !== when) return; // a later step is on its way
    this.isSafe = isWritten;
    this.isKept = isStored || isWritten;
    this.onKept();
  }

  put(place, answer) {
    this.history.push({ place, before: this.of[place] });
    this.of[place] = answer;
    this.nSaved = -1;
  }

  // Answer the row that is shown, and go on to the next one without an answer.
  give(answer) {
    this.put(this.current, answer);
    if (!this.isCaughtUp) this.meanwhile.add(this.current);
    this.go(this.nextOpen());
  }

  // The next row without an answer; after the last one, the first; nRows if there is none.
  nextOpen() {
    const later = this.of.findIndex((one, place) => one === null && place > this.current);
    const open = later >= 0 ? later : this.of.indexOf(null);
    return open >= 0 ? open : nRows;
  }

  // Take the last answer back, and show its row.
  undo() {
    const step = this.history.pop();
    if (!step) return null;
    this.of[step.place] = step.before;
    this.meanwhile.delete(step.place);
    this.nSaved = -1;
    this.go(step.place);
    return step.place;
  }

  go(place) {
    this.current = Math.min(Math.max(place, 0), nRows);
    this.keep();
  }

  saved() {
    this.nSaved = this.labeled.length;
    this.keep();
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

const answers = new Answers(() => showProgress());
