// Which predictions are kept at the chosen risk, and what that means for the rows at hand.

const KEPT = 1;
const ABSTAINED = 0;
const LABELED = 2; // has a label already: nothing to decide
const DECISION_NAMES = ["left to a person", "kept", "has a label"];

class Decisions {
  constructor() {
    this.controls = given.controls && {
      ...given.controls,
      targets: unpacked(given.controls.targets),
      promises: given.controls.promises.map((promise) => ({
        ...promise,
        threshold: unpacked(promise.threshold),
        coverage: unpacked(promise.coverage),
        risk: unpacked(promise.risk),
        nKept: promise.nKept && unpacked(promise.nKept),
      })),
    };
    const { labeled, certainty } = predictions;
    this.areAllLabeled = labeled.every((flag) => flag === 1);
    this.counted = Int32Array.from(labeled.keys()).filter((row) => this.areAllLabeled || !labeled[row]);
    // Rows without a certainty are the least certain of all.
    const rank = (row) => (Number.isNaN(certainty[row]) ? -Infinity : certainty[row]);
    this.byCertainty = this.counted.slice().sort((one, other) => compared(rank(one), rank(other)) || one - other);
    this.state = new Uint8Array(nRows).fill(LABELED);
    this.promise = 0;
    this.choose(this.controls ? this.controls.start : 0);
  }

  choose(position, promise = this.promise) {
    Object.assign(this, { position, promise });
    const threshold = this.threshold;
    this.nKept = 0;
    for (const row of this.counted) {
      const isKept = predictions.certainty[row] >= threshold;
      this.state[row] = isKept ? KEPT : ABSTAINED;
      if (isKept) this.nKept++;
    }
  }

  get threshold() {
    return this.controls ? this.controls.promises[this.promise].threshold[this.position] : -Infinity;
  }

  // How many predictions of the whole table are kept, of how many: the page may show only some of them.
  get counts() {
    const { nKept } = this.controls ? this.controls.promises[this.promise] : {};
    return nKept ? { kept: nKept[this.position], all: this.controls.nDecided } : { kept: this.nKept, all: this.counted.length };
  }

  get abstained() {
    return Array.from(this.byCertainty).filter((row) => this.state[row] === ABSTAINED);
  }

  // The chosen target with what cross-validation leads to expect; null without a slider.
  get now() {
    if (!this.controls) return null;
    const promise = this.controls.promises[this.promise];
    const at = (values) => values[this.position];
    return { target: at(this.controls.targets), coverage: at(promise.coverage), risk: at(promise.risk) };
  }

  get targetText() {
    const { target } = this.now;
    if (target === Infinity) return "no limit";
    return this.controls.unit === "%" ? exactShare(target) : withUnit(target, this.controls.unit);
  }
}

function compared(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

// Fills the slider, the choice of the promise, and calls back when either moves.
function listenToSlider(decisions, changed) {
  const slider = byId("risk");
  slider.max = decisions.controls.targets.length - 1;
  slider.value = decisions.position;
  slider.addEventListener("input", () => {
    decisions.choose(Number(slider.value));
    changed();
  });
  const choices = byId("promises");
  choices.hidden = decisions.controls.promises.length < 2;
  decisions.controls.promises.forEach((promise, number) => {
    const choice = element("input", { type: "radio", name: "promise", value: number, checked: number === 0 });
    choice.addEventListener("change", () => {
      decisions.choose(decisions.position, number);
      changed();
    });
    choices.append(element("label", {}, [choice, promise.name]));
  });
}

function showCounts(decisions) {
  const { controls, now } = decisions;
  const promise = controls.promises[decisions.promise];
  const { kept, all } = decisions.counts;
  const isPart = given.points.sampled && controls.nDecided === null;
  const kind = (decisions.areAllLabeled ? "" : " without a label") + (isPart ? ", of those shown" : "");
  byId("risk-value").textContent = decisions.targetText;
  byId("risk").setAttribute("aria-valuetext", decisions.targetText);
  const bar = element("div", { className: "coverage-bar" }, [element("div")]);
  bar.firstChild.style.width = `${all ? (100 * kept) / all : 0}%`;
  const limit = now.target === Infinity ? "Without a limit:" : `At most ${decisions.targetText} ${controls.riskName}, ${promise.name}:`;
  byId("counts").replaceChildren(
    element("p", { className: "only-print", textContent: limit }),
    element("p", { className: "big", textContent: `Kept ${count(kept)} of ${rows(all)}${kind}${all ? ` (${share(kept / all)})` : ""}` }),
    bar,
    element("p", { textContent: wordsOfCounts(controls, promise, now, kept, all) }),
    element("p", { className: "explanation small", textContent: now.target === Infinity ? "" : promise.explanation }),
  );
}

// What is left to a person, and how wrong the kept ones were in cross-validation; whether that is a promise.
function wordsOfCounts(controls, promise, now, kept, all) {
  if (all === 0) return "There is no row to decide on.";
  if (kept === 0) return "All are left to a person: no certainty is enough for this. Allow more risk, or label more rows.";
  const seen = `In cross-validation the ${controls.riskName} of the kept was ${withUnit(now.risk, controls.unit)}.`;
  const left = `${count(all - kept)} left to a person.`;
  if (now.target === Infinity) return `All are kept, and nothing is promised. ${seen}`;
  return promise.isPromise ? `${left} ${seen}` : `${left} ${seen} This is an estimate, and no promise.`;
}

const BINS = 40;

// Rows by certainty: in regression by the standard deviation, of which less is better. Rows without a certainty are in no bin.
class Histogram {
  constructor(decisions) {
    const { certainty, isProbability, unit } = predictions;
    this.decisions = decisions;
    this.sign = isProbability ? 1 : -1;
    this.rows = decisions.counted.filter((row) => Number.isFinite(certainty[row]));
    const { low } = rangeOf(certainty, this.rows);
    this.x = isProbability ? { low: Math.floor(low * 20) / 20, high: 1 } : { low: 0, high: Math.max(-low, 1e-9) };
    const place = (row) => Math.floor(((this.sign * certainty[row] - this.x.low) / width(this.x)) * BINS);
    this.bins = Uint8Array.from(this.rows, (row) => clamped(place(row), 0, BINS - 1));
    this.edges = Array.from({ length: BINS + 1 }, (_, k) => this.x.low + (k / BINS) * width(this.x));
    this.text = (value) => withUnit(value, isProbability ? "%" : "");
    this.name = isProbability ? "probability of the predicted class" : `standard deviation${unit ? ` (${unit})` : ""}`;
  }

  // How many rows of each bin are kept, and how many are not.
  heights() {
    const heights = Array.from({ length: BINS }, () => [0, 0]);
    this.rows.forEach((row, k) => heights[this.bins[k]][this.decisions.state[row] === KEPT ? 0 : 1]++);
    return heights;
  }

  draw(host) {
    const heights = this.heights();
    const top = Math.max(...heights.map(([kept, left]) => kept + left), 1) * 1.06;
    const yText = (value) => (Number.isInteger(value) ? count(value) : "");
    const label = `How many rows have which ${this.name}`;
    const panel = new Panel(host, { x: this.x, y: { low: 0, high: top }, xName: this.name, yName: "rows", xText: this.text, yText, label });
    drawBars(panel, this.edges, heights, ["bar", "bar-abstained"]);
    const line = panel.atX(this.sign * this.decisions.threshold);
    if (Number.isFinite(line)) panel.marks.append(shape("line", { class: "target", x1: line, x2: line, y1: MARGIN.top, y2: panel.bottom }));
    panel.onHover((place) => this.words(heights, Math.floor(panel.shareAt(place) * BINS)));
  }

  words(heights, bin) {
    if (bin < 0 || bin >= BINS) return [];
    const [kept, left] = heights[bin].map(rows);
    const ends = `${this.text(this.edges[bin])} to ${this.text(this.edges[bin + 1])}`;
    return this.decisions.controls ? [ends, `${kept} kept`, `${left} left to a person`] : [ends, kept];
  }
}
