// Puts the page together: answers go in by keys and buttons, and out as a file.

const root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const choices = new Choices((label) => answerWith({ label }));

function setTheme(theme) {
  root.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colors`);
}

function draw() {
  const isAtEnd = answers.current >= nRows;
  byId("labeling").hidden = isAtEnd;
  byId("finish").hidden = !isAtEnd;
  showProgress();
  if (isAtEnd) {
    showSummary();
    return;
  }
  showRow();
  if (isNumeric) {
    byId("number").value = answers.of[answers.current]?.label ?? "";
    byId("number").select();
  } else {
    choices.draw();
  }
}

// After a step, the beginning of the new row is seen: on a phone, the buttons lie below it. The keyboard is in the field for numbers, at
// the end on the summary, and otherwise where it was.
function settle() {
  const shown = byId(answers.current >= nRows ? "finish" : "labeling");
  if (shown.getBoundingClientRect().top < 0) shown.scrollIntoView();
  if (answers.current >= nRows) byId("finish-heading").focus();
  else if (isNumeric) byId("number").focus();
  else if (document.activeElement === byId("new-class")) byId("row-heading").focus();
}

function tell(words) {
  byId("live").textContent = words;
}

function complain(words) {
  byId("problem").textContent = words;
}

function whereNow() {
  return answers.current >= nRows ? byId("finish-heading").textContent : `${rowName(answers.current)}, ${answers.nDone} of ${nRows} done`;
}

function answerWith(answer) {
  if (answers.current >= nRows) return;
  const before = `${rowName(answers.current)}: ${answer.isSkipped ? "skipped" : answer.label}.`;
  complain("");
  answers.give(answer);
  draw();
  settle();
  tell(`${before} ${whereNow()}.`);
}

function undo() {
  const place = answers.undo();
  if (place === null) return;
  complain("");
  draw();
  settle();
  tell(`Taken back: ${whereNow()}.`);
}

function goTo(place) {
  answers.go(place);
  complain("");
  draw();
  settle();
  tell(`${whereNow()}.`);
}

// Rows that were skipped are open again.
function againSkipped() {
  const { skipped } = answers;
  if (skipped.length === 0) return;
  for (const place of skipped) answers.of[place] = null;
  answers.history = answers.history.filter(({ place }) => !skipped.includes(place));
  goTo(skipped[0]);
}

// Show what the database has, if it is newer: it tells later than the page is drawn, and another window may have written since.
async function catchUp() {
  const isNew = await answers.catchUp();
  if (isNew) draw();
  else showProgress();
  return isNew;
}

function save() {
  const n = answers.labeled.length;
  if (n === 0) {
    complain("There is no label to save yet.");
    return;
  }
  download(given.file, answers.csv());
  answers.saved();
  showProgress();
  const words = `Saved ${count(n)} label${n === 1 ? "" : "s"} as ${given.file}, in the folder of your downloads.`;
  byId("saved").textContent = words;
  tell(words);
}

function addClass(event) {
  event.preventDefault();
  const { label, problem } = namedClass(byId("new-class").value);
  complain(problem ?? "");
  if (problem) return;
  byId("new-class").value = "";
  answerWith({ label });
}

function confirmNumber(event) {
  event.preventDefault();
  const { label, problem } = typedNumber(byId("number").value);
  complain(problem ?? "");
  if (!problem) answerWith({ label });
}

async function copy(event) {
  const code = byId(event.currentTarget.dataset.copies);
  window.getSelection().selectAllChildren(code);
  try {
    await navigator.clipboard.writeText(code.textContent);
    tell("Copied.");
    event.target.textContent = "Copied";
  } catch {
    tell("The command is selected: copy it with Ctrl and C.");
  }
}

const COMMANDS = {
  s: () => answerWith({ isSkipped: true }),
  u: undo,
  e: save,
  r: () => answers.current >= nRows && againSkipped(),
  n: () => !isNumeric && byId("new-class").focus(),
  "/": () => !byId("find-box").hidden && byId("find").focus(),
  ArrowLeft: () => goTo(answers.current - 1),
  ArrowRight: () => goTo(answers.current + 1),
};

// Letters that are typed into a field are text; an empty field for numbers takes none, so that they are commands there too.
function isTyping(target) {
  if (target === byId("number")) return target.value !== "";
  return target instanceof HTMLInputElement && target.type !== "checkbox";
}

function listenToKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !byId("keys").checked) return;
  if (event.key === "Escape" && event.target instanceof HTMLInputElement) event.target.blur();
  if (isTyping(event.target)) return;
  if (isNumeric && /^[\d.,+\-−]$/.test(event.key)) byId("number").focus(); // which takes the key
  const label = isNumeric || answers.current >= nRows ? undefined : choices.byKey(event.key);
  const command = COMMANDS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (label === undefined && !command) return;
  event.preventDefault();
  if (label === undefined) command();
  else choices.choose(label);
}

function fillTexts() {
  document.title = given.title;
  for (const [id, text] of Object.entries(given.texts)) byId(id).textContent = text;
  byId("bar").setAttribute("aria-valuemax", String(nRows));
  for (const one of document.querySelectorAll(".file-name")) one.textContent = given.file;
  for (const one of document.querySelectorAll(".of-classes")) one.hidden = isNumeric;
  for (const one of document.querySelectorAll(".of-numbers")) one.hidden = !isNumeric;
}

function listen() {
  const clicks = {
    skip: COMMANDS.s, undo, "undo-last": undo, save, "save-last": save, again: againSkipped,
    previous: COMMANDS.ArrowLeft, next: COMMANDS.ArrowRight, "copy-command": copy, "copy-more": copy,
    theme: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"),
  };
  for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
  byId("new-class-form").addEventListener("submit", addClass);
  byId("number-form").addEventListener("submit", confirmNumber);
  document.addEventListener("keydown", listenToKeys);
  prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
  window.addEventListener("beforeprint", fillPaper);
  window.addEventListener("storage", ({ key, newValue }) => {
    if (key === KEY && answers.adopt(parsed(newValue))) draw(); // the same page in another window
  });
  window.addEventListener("focus", catchUp);
  window.addEventListener("beforeunload", (event) => {
    if (!answers.isSafe && !answers.isSaved) event.preventDefault();
  });
}

fillTexts();
listen();
setTheme(prefersDark.matches ? "dark" : "light");
draw();
settle();
catchUp().then((isNew) => isNew && settle());
