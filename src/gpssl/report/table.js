// The most uncertain rows as a table, and as CSV to download.

const MOST_COLUMNS = 8; // of the user's table in the page; the CSV has all

function certaintyColumns() {
  const { isProbability, certainty, std, unit } = predictions;
  const probability = { name: "Probability", value: (row) => certainty[row], text: (row) => share(certainty[row]), isNumber: true, className: "number" };
  const spread = std && {
    name: isProbability ? "± standard deviation" : "Standard deviation",
    value: (row) => std[row],
    text: (row) => withUnit(std[row], isProbability ? "%" : unit),
    isNumber: true, className: "number",
  };
  return [isProbability && probability, spread].filter(Boolean);
}

function tableColumns(decisions) {
  const state = (row) => DECISION_NAMES[decisions.state[row]];
  const asText = (name, text) => ({ name, text, value: text });
  return [
    asText("Row", rowName),
    asText(`Predicted ${predictions.target}`, predictions.text),
    ...certaintyColumns(),
    ...(decisions.controls ? [{ ...asText("Decision", state), className: "short" }] : []),
    ...columns.map(({ name, text }) => asText(name, text)),
  ];
}

class UncertainTable {
  constructor(decisions, show) {
    Object.assign(this, { decisions, show, table: byId("uncertain"), sorted: null, falling: false });
    this.columns = tableColumns(decisions);
    const hidden = Math.max(columns.length - MOST_COLUMNS, 0);
    this.shown = this.columns.slice(0, this.columns.length - hidden);
    this.hidden = hidden;
    byId("download-listed").addEventListener("click", () => download("most-uncertain-rows.csv", this.csv(this.listed())));
    byId("download-abstained")?.addEventListener("click", () => download("rows-left-to-a-person.csv", this.csv(decisions.abstained)));
    this.draw();
  }

  // The least certain rows, in the order that was clicked.
  listed() {
    const least = Array.from(this.decisions.byCertainty.slice(0, given.uncertain));
    if (!this.sorted) return least;
    const direction = this.falling ? -1 : 1;
    return least.sort((one, other) => direction * comparedCells(this.sorted.value(one), this.sorted.value(other)));
  }

  draw() {
    const listed = this.listed();
    const nAbstained = this.decisions.counted.length - this.decisions.nKept;
    const button = byId("download-abstained");
    if (button) button.textContent = `Download ${given.points.sampled ? "the" : "all"} ${rows(nAbstained)} ${given.points.sampled ? "shown here that are " : ""}left to a person as CSV`;
    if (button) button.disabled = nAbstained === 0;
    byId("uncertain-words").textContent = this.words(listed.length);
    this.table.replaceChildren(this.head(), element("tbody", {}, listed.map((row) => this.line(row))));
  }

  words(n) {
    const kind = this.decisions.areAllLabeled ? "rows" : "rows without a label";
    const left = this.hidden ? ` The CSV has ${this.hidden} more column${this.hidden === 1 ? "" : "s"}.` : "";
    return `The ${count(n)} ${kind} of which the model is least sure, the least sure first.${left}`;
  }

  head() {
    const cells = this.shown.map((column) => {
      const button = element("button", { type: "button", textContent: column.name });
      button.addEventListener("click", () => this.sortBy(column));
      const cell = element("th", { scope: "col", className: column.className ?? "" }, [button]);
      if (column === this.sorted) cell.setAttribute("aria-sort", this.falling ? "descending" : "ascending");
      return cell;
    });
    return element("thead", {}, [element("tr", {}, cells)]);
  }

  line(row) {
    const abstained = this.decisions.state[row] === ABSTAINED;
    const [first, ...others] = this.shown;
    const button = element("button", { type: "button", className: "link", title: "Show on the map", textContent: first.text(row) });
    button.addEventListener("click", () => this.show(row));
    const cells = others.map((column) => element("td", { className: column.className ?? "", textContent: column.text(row) }));
    return element("tr", { className: abstained ? "abstained" : "" }, [element("td", {}, [button]), ...cells]);
  }

  sortBy(column) {
    this.falling = this.sorted === column && !this.falling;
    this.sorted = column;
    this.draw();
  }

  csv(listed) {
    const cell = (column, row) => (column.isNumber ? numberCell(column.value(row)) : textCell(column.text(row)));
    const lines = [this.columns.map((column) => textCell(column.name)), ...listed.map((row) => this.columns.map((column) => cell(column, row)))];
    return lines.map((line) => line.join(",") + "\r\n").join("");
  }
}

// By number where both are numbers, otherwise by the alphabet, in which row 10 follows row 9.
function comparedCells(one, other) {
  const [left, right] = [Number(one), Number(other)];
  if (one !== "" && other !== "" && !Number.isNaN(left) && !Number.isNaN(right)) return left - right;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

function numberCell(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "";
}
