/* The playground: settings, the theorem and the training side by side, and all of it in the page's address. */

import { choiceFor, controlFor, make } from "./controls.js";
import { connect, fetched, throttled } from "./live.js";
import { curvesPanel, diagramPanel, showSide } from "./panels.js";
import { capital, formula, prose, typeset } from "./prose.js";
import { SECTIONS, arranged, claimOf, complete, linkOf, ownTask } from "./settings.js";
import { parameters, planeOf, reaching, settingOf, settingOfLink } from "./settings.js";

const find = (id) => document.getElementById(id);
const OWN = "Your own task";
const OWN_WORDS = "Choose data, network, loss and algorithm, and watch what is learnt.";
const TITLES = { data: "Data", network: "Network", objective: "Loss", algorithm: "Algorithm" };
const PATIENCE = 3000; // ms after the last change before a phase diagram no longer waits for the training
const SETTLED = 500; // ms without a change before a phase diagram is asked for
const FILES = {
  "figure.svg": "Figure, SVG", "figure.png": "Figure, PNG", "data.nc": "Data, netCDF",
  "script.py": "Python script", "experiment.toml": "Experiment, TOML",
};

let catalogue = null, setting = null, controls = [], line = null;
let job = 0, training = 0, drawing = 0; // numbers of the newest of all, of the training and of the diagram
let asked = false, working = false, filling = false; // a training is about to begin; one runs; a diagram fills
let planeShown = "", planeTimer = null, lastChange = 0;
const curves = curvesPanel();
const diagram = diagramPanel((place) => change({ ...setting, ...place }));

/* ---- colours ---- */

function colours() {
  const wide = window.matchMedia("(prefers-color-scheme: dark)"), button = find("theme");
  const stored = () => { try { return localStorage.getItem("featlab-theme"); } catch { return null; } };
  const show = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-pressed", String((theme || (wide.matches ? "dark" : "light")) === "dark"));
  };
  show(stored());
  wide.addEventListener("change", () => show(stored()));
  button.addEventListener("click", () => {
    const theme = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    try { localStorage.setItem("featlab-theme", theme); } catch { /* a private window keeps nothing */ }
    show(theme);
  });
}

/* ---- talking to the server ---- */

const train = throttled(() => {
  training = job += 1;
  asked = false;
  working = line.send({ do: "train", job: training, setting });
  showRunning();
}, () => !working);

/* The setting less the two fields of the diagram's plane: while it stays the same, so does the diagram. */
function restOfPlane() {
  const plane = planeOf(catalogue, setting);
  return plane ? JSON.stringify(Object.entries(setting).filter(([key]) => !plane.includes(key))) : "";
}

function askDiagram() {
  clearTimeout(planeTimer);
  const plane = restOfPlane();
  find("phase").hidden = !plane;
  if (!plane) { diagram.clear(); planeShown = ""; return; }
  const left = !setting.claim && !filling && !diagram.covers(setting); // no theorem says which plane to draw
  if (plane === planeShown && !left) return;
  diagram.stale = true;
  diagram.ask();
  if (filling) { // nobody waits for the rest of it; the training is asked for anew right after this
    line.send({ do: "stop" });
    filling = false;
    planeShown = "";
  }
  planeTimer = setTimeout(() => {
    if ((asked || working) && performance.now() - lastChange < PATIENCE) return askDiagram();
    drawing = job += 1;
    filling = line.send({ do: "diagram", job: drawing, setting });
    if (filling) planeShown = plane;
    showRunning();
  }, SETTLED);
}

function take(message) {
  const own = message.kind === "diagram" ? message.job === drawing : message.job === training;
  if (message.kind === "problem") return own || message.job === drawing ? showProblem(message) : undefined;
  if (message.kind === "waiting") {
    if (own) find("progress").textContent = message.text;
    else if (message.job === drawing) find("phase-progress").textContent = message.text;
    return;
  }
  if (!own) return;
  if (message.kind === "side") { find("problem").textContent = ""; showSide(message); }
  if (message.kind === "diagram") {
    diagram.take(message);
    filling = !message.done;
    showRunning();
  }
  if (message.kind === "curves") {
    if (!curves.take(message)) return;
    working = !message.done;
    const { steps, of } = curves.curves, at = steps.length ? steps[steps.length - 1] : 0;
    find("track").style.width = `${message.done ? 100 : Math.min(100, (100 * at) / (of || 1))}%`;
    find("progress").textContent = message.note || (message.done ? "" : `step ${at} of ${of}`);
    showRunning();
  }
}

function showProblem(message) {
  find("problem").textContent = message.text;
  find("progress").textContent = "";
  if (message.job === training) working = false;
  else filling = false;
  showRunning();
}

function showRunning() {
  find("stop").textContent = asked || working || filling ? "Stop" : "Run again";
  find("live").classList.toggle("running", asked || working);
}

/* ---- the setting ---- */

/* A new setting: the address and the charts follow; `rebuild` makes the controls anew. */
function change(next, rebuild = false) {
  setting = rebuild ? complete(catalogue, next) : next;
  lastChange = performance.now();
  history.replaceState(null, "", `#${linkOf(catalogue, setting)}`);
  if (rebuild) showControls();
  else for (const control of controls) control.show(setting[control.key]);
  curves.stale = asked = true;
  curves.ask();
  diagram.at(setting);
  train();
  showRunning();
  askDiagram();
  const fields = parameters(setting);
  for (const link of find("downloads").children) link.href = `download/${link.dataset.file}?${fields}`;
}

/* A field changed by hand; its own control already shows it. */
function edited(entry, value) {
  const next = { ...setting };
  if (value === undefined) delete next[entry.key];
  else next[entry.key] = value;
  change(next, entry.field.kind === "activation");
}

function showControls() {
  const claim = claimOf(catalogue, setting), { main, rest, leading } = arranged(catalogue, setting);
  const focused = document.activeElement && document.activeElement.dataset.key;
  controls = [];
  const build = (entry, large) => {
    const own = claim ? claim.setting[entry.key] : undefined; // a theorem's own fields are always given
    const field = own === undefined ? entry.field : { ...reaching(entry.field, own), optional: false };
    const change = (value) => edited(entry, value);
    const control = controlFor({ ...entry, field }, setting[entry.key], catalogue.kinds, change, large);
    controls.push(control);
    return control.element;
  };
  find("claim").value = setting.claim;
  find("main-fields").replaceChildren(...main.map((entry) => build(entry, leading.includes(entry.key) || !claim)));
  const groups = [...SECTIONS, "run"].map((section) => {
    const entries = rest.filter((entry) => entry.section === section);
    const title = section === "run" ? "Training" : TITLES[section], kind = setting[section] || "";
    if (!entries.length) return "";
    const legend = make("legend", {}, title, make("span", { className: "kind" }, kind));
    return make("fieldset", {}, legend, ...entries.map((one) => build(one, false)));
  });
  find("more-fields").replaceChildren(...groups);
  find("more").hidden = !rest.length;
  find("reset").hidden = !claim;
  showParts(claim);
  showTheorem(claim);
  const again = focused && document.querySelector(`[data-key="${focused}"]`);
  if (again) again.focus();
}

/* For one's own task: data, network, loss and algorithm. */
function showParts(claim) {
  find("parts").replaceChildren(...(claim ? [] : SECTIONS.map((section) => choiceFor(
    section, TITLES[section], catalogue.kinds[section], setting[section],
    (kind) => change(ownTask(catalogue, { ...setting, [section]: kind }), true)).element)));
}

function showTheorem(claim) {
  find("paper").textContent = claim ? claim.paper : "";
  typeset(find("title"), claim ? capital(claim.title) : OWN);
  prose(find("words"), claim ? claim.words : "");
  find("about").hidden = !claim || !claim.words.length;
  find("lead").textContent = claim ? "" : OWN_WORDS;
  find("side").hidden = !claim;
  formula(find("statement"), claim ? claim.statement : "");
  showSide({ sentence: "", number: null, symbol: "", assumptions: [] });
}

function fillChoices() {
  const papers = new Map();
  for (const claim of catalogue.claims) {
    if (!papers.has(claim.paper)) papers.set(claim.paper, make("optgroup", { label: claim.paper }));
    papers.get(claim.paper).append(make("option", { value: claim.id }, capital(claim.title)));
  }
  find("claim").replaceChildren(...papers.values(), make("option", { value: "" }, OWN));
  find("downloads").replaceChildren(...Object.entries(FILES).map(([file, words]) => {
    const link = make("a", { className: "button", href: "#" }, words);
    link.dataset.file = file;
    link.addEventListener("click", (event) => { event.preventDefault(); download(link); });
    return link;
  }));
}

/* ---- what can be taken away ---- */

async function download(link) {
  const note = find("download-note"), { file } = link.dataset;
  note.textContent = `Preparing ${file} …`;
  try {
    const answer = await fetch(link.href);
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}));
      note.textContent = told.problem || `The server could not make ${file}.`;
      return;
    }
    const address = URL.createObjectURL(await answer.blob());
    make("a", { href: address, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    note.textContent = `${file} is saved.`;
  } catch {
    note.textContent = "The server does not answer; try again when it is back.";
  }
}

async function share() {
  const button = find("share");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Link copied";
  } catch {
    button.textContent = "Copy it from the address bar";
  }
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

/* ---- start ---- */

function listen() {
  find("claim").addEventListener("change", (event) => {
    planeShown = "";
    change(settingOf(catalogue, event.target.value, setting), true);
  });
  find("reset").addEventListener("click", () => change(settingOf(catalogue, setting.claim), true));
  find("share").addEventListener("click", share);
  find("log-time").addEventListener("change", (event) => { curves.logTime = event.target.checked; curves.ask(); });
  find("stop").addEventListener("click", () => {
    if (!working && !filling) { planeShown = ""; return change(setting); }
    line.send({ do: "stop" });
    clearTimeout(planeTimer);
    working = filling = false;
    find("progress").textContent = "stopped";
    showRunning();
  });
  window.addEventListener("hashchange", () => change(settingOfLink(catalogue, location.hash) || setting, true));
}

async function start() {
  const note = (text) => { find("connection").textContent = text; };
  colours();
  catalogue = await fetched("api/catalogue", () => note("waiting for the server …"));
  note("");
  fillChoices();
  const first = (catalogue.claims[0] || { id: "" }).id;
  setting = settingOfLink(catalogue, location.hash) || settingOf(catalogue, first, {});
  listen();
  line = connect({
    open: () => { note(""); planeShown = ""; change(setting); },
    lost: () => { note("reconnecting …"); working = filling = false; showRunning(); },
    message: take,
  });
  change(setting, true);
}

start();
