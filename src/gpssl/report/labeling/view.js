// Shows the row in question, how far the person has come, and at the end what to do with the labels.

const LONG_TEXT = 60; // characters from which a column is set as text to be read, not as values

const isLong = given.columns.map((_, column) => given.rows.some(({ cells }) => cells[column].length > LONG_TEXT || cells[column].includes("\n")));

function rowName(place) {
  return `Row ${given.rows[place].row}`;
}

function labelWords(place) {
  const answer = answers.of[place];
  return answer === null ? "no label yet" : answer.isSkipped ? "skipped" : answer.label;
}

// Names and texts of the cells, without empty ones: they are named at the end.
function cellParts(place) {
  const { cells } = given.rows[place];
  const filled = given.columns.map((_, column) => column).filter((column) => cells[column] !== "");
  const empty = given.columns.filter((_, column) => cells[column] === "");
  const pairs = filled.map((column) =>
    element("div", { className: isLong[column] ? "long" : "" }, [
      element("dt", { textContent: given.columns[column] }), element("dd", { textContent: cells[column] }),
    ]));
  const rest = empty.length ? [element("p", { className: "explanation small", textContent: `Empty: ${empty.join(", ")}.` })] : [];
  return { pairs, rest };
}

function showRow() {
  const { current } = answers;
  const { reason, predicted } = given.rows[current];
  byId("row-heading").textContent = rowName(current);
  byId("place").textContent = `${count(current + 1)} of ${count(nRows)}`;
  byId("reason").textContent = reason ? `Why this row: ${reason}.` : "";
  const { pairs, rest } = cellParts(current);
  byId("cells").replaceChildren(...pairs);
  byId("empty-cells").replaceChildren(...rest);
  byId("cells-box").scrollTop = 0;
  byId("answered").textContent = answers.of[current] ? `Your answer: ${labelWords(current)}. Another one replaces it.` : "";
  byId("thinks").textContent = thoughts(predicted, given.rows[current].probabilities);
  byId("previous").disabled = current === 0;
}

function thoughts(predicted, probabilities) {
  if (predicted === null) return "There are too few labels for a model: these rows show what the table holds.";
  if (isNumeric) return `The model expects ${predicted}.`;
  return probabilities ? "Bars: how probable the model finds each class." : `The model guesses ${predicted}.`;
}

function showProgress() {
  const { nDone } = answers;
  const words = `${count(nDone)} of ${count(nRows)}`;
  byId("progress-words").textContent = `${words} done`;
  byId("bar").setAttribute("aria-valuenow", String(nDone));
  byId("bar").setAttribute("aria-valuetext", words);
  byId("bar").firstElementChild.style.width = `${(100 * nDone) / nRows}%`;
  byId("undo").disabled = byId("undo-last").disabled = answers.history.length === 0;
  byId("save").disabled = byId("save-last").disabled = answers.labeled.length === 0;
  byId("kept").className = answers.isKept ? "kept explanation small" : "problem small";
  byId("kept").textContent = answers.isKept ? "Kept in this browser: close the page and come back." : "This browser keeps nothing: save before you close the page.";
}

function showSummary() {
  const { labeled, skipped } = answers;
  const nOpen = nRows - answers.nDone;
  const parts = [`${count(labeled.length)} labeled`, `${count(skipped.length)} skipped`, ...(nOpen ? [`${count(nOpen)} left`] : [])];
  byId("finish-heading").textContent = `${nOpen ? "So far" : "Done"}: ${parts.join(", ")}`;
  byId("counts").textContent = isNumeric ? "" : countedClasses(labeled);
  byId("again").hidden = skipped.length === 0;
  byId("given-labels").replaceChildren(...given.rows.map((_, place) => summaryLine(place)));
}

function countedClasses(labeled) {
  const counts = answers.classes.map((name) => [name, labeled.filter((place) => answers.of[place].label === name).length]);
  return counts.flatMap(([name, n]) => (n ? [`${name} ${count(n)}`] : [])).join(", ");
}

function summaryLine(place) {
  const button = element("button", { type: "button", className: "link", textContent: rowName(place) });
  button.addEventListener("click", () => goTo(place));
  const beginning = given.rows[place].cells.filter(Boolean).join(" · ").slice(0, 160);
  const cells = [element("td", {}, [button]), element("td", { textContent: labelWords(place) }), element("td", { textContent: beginning })];
  cells[1].className = answers.of[place]?.label === undefined ? "explanation" : "strong";
  return element("tr", {}, cells);
}

// On paper: all rows, with their label or a line to write it on.
function fillPaper() {
  const rows = given.rows.map((_, place) => {
    const { pairs, rest } = cellParts(place);
    const label = answers.of[place]?.label ?? "_".repeat(20);
    const heading = element("h2", { textContent: `${rowName(place)} — ${given.target}: ${label}` });
    return element("section", { className: "card" }, [heading, element("dl", { className: "cells" }, pairs), ...rest]);
  });
  byId("paper").replaceChildren(...rows);
}
