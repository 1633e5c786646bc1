// Puts the parts of the page together: those that are there.

const root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return root.dataset.theme === "dark";
}

const riskCoverage = given.riskCoverage && preparedChart(given.riskCoverage);
const reliability = given.reliability && preparedChart(given.reliability);
const decisions = predictions && new Decisions();
const histogram = decisions && new Histogram(decisions);
const colors = new Colors(decisions);
const scatter = new Scatter(byId("scatter"), positions, given.points);
const pointer = new Pointer(scatter, describe);
const table = byId("uncertain") && new UncertainTable(decisions, showOnMap);

// A row in words: heading and lines, for the box beside the pointer and the pinned one.
function describe(row, mostColumns) {
  const lines = predictions ? linesOfPrediction(row) : [];
  const colored = colors.lineFor(row);
  if (colored && !lines.some(([name]) => name === colored[0])) lines.push(colored);
  const cells = columns.slice(0, mostColumns).map(({ name, text }) => [name, text(row)]);
  const pair = ([name, text]) => element("div", {}, [element("dt", { textContent: name }), element("dd", { textContent: text })]);
  const more = columns.length - cells.length;
  const end = more > 0 ? [element("p", { className: "small", textContent: `Click to see ${count(more)} more columns.` })] : [];
  return [element("h3", { textContent: `Row ${rowName(row)}` }), element("dl", {}, [...lines, ...cells].map(pair)), ...end];
}

function linesOfPrediction(row) {
  const { target, isProbability, certainty, std, unit } = predictions;
  const predicted = [`Predicted ${target}`, predictions.text(row)];
  const spread = std && Number.isFinite(std[row]) ? ` ± ${withUnit(std[row], isProbability ? "%" : unit)}` : "";
  const lines = isProbability ? [predicted, ["Probability of the predicted class", share(certainty[row]) + spread]] : [[predicted[0], predicted[1] + spread]];
  if (decisions.controls || decisions.state[row] === LABELED) lines.push(["Decision", DECISION_NAMES[decisions.state[row]]]);
  return lines;
}

function showOnMap(row) {
  scatter.reset();
  pointer.pin(row);
  scatter.schedule();
  byId("map").scrollIntoView({ block: "center" });
}

function recolor() {
  if (colors.current) colors.drawLegend(recolor);
  scatter.look(...colors.look());
}

function drawCharts() {
  if (histogram) histogram.draw(byId("histogram"));
  if (byId("risk-coverage")) drawRiskCoverage(byId("risk-coverage"), riskCoverage, decisions && decisions.now);
}

function drawAllCharts() {
  drawCharts();
  if (byId("reliability")) drawReliability(byId("reliability"), reliability);
  if (byId("spectrum")) drawSpectrum(byId("spectrum"), unpacked(given.spectrum));
}

// The counts follow the slider at once, everything else with the next frame.
function decided() {
  showCounts(decisions);
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(showDecisions);
}

let isWaiting = false;

function showDecisions() {
  isWaiting = false;
  recolor();
  drawCharts();
  if (table) table.draw();
  if (pointer.pinned >= 0) pointer.pin(pointer.pinned);
}

function setTheme(theme) {
  root.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colors`);
  recolor();
}

function fillColorings() {
  const menu = byId("color-by");
  if (!menu) return;
  menu.append(...colors.all.map(({ name }, number) => element("option", { value: number, textContent: name })));
  menu.addEventListener("change", () => {
    colors.chosen = Number(menu.value);
    colors.highlighted = -1;
    recolor();
  });
}

// Paper is white and finer than most screens; the canvas does not follow the style sheet by itself.
function listenToPrinting() {
  let before = root.dataset.theme;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    setTheme("light");
    scatter.resize(3);
  });
  window.addEventListener("afterprint", () => {
    setTheme(before);
    scatter.resize();
  });
}

// Charts have the width of the page, and change its height: only the width is listened to.
function listenToWidth() {
  let known = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== known) drawAllCharts();
    known = contentRect.width;
  }).observe(document.querySelector("main"));
}

function start() {
  fillColorings();
  if (decisions?.controls) {
    listenToSlider(decisions, decided);
    showCounts(decisions);
  }
  byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
  setTheme(prefersDark.matches ? "dark" : "light");
  new ResizeObserver(() => scatter.resize()).observe(byId("map"));
  listenToWidth();
  listenToPrinting();
  scatter.resize();
}

start();
