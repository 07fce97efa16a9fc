/* What the server's answers look like: the side of the theorem, the curves, the phase diagram. */

import { make } from "./controls.js";
import { formula, typeset } from "./prose.js";

const find = (id) => document.getElementById(id);

/* Draws once a frame however often it is asked. */
export function framed(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}

/* ---- which side we are on ---- */

const WIDEST = 32; // the gauge runs from 1/32 to 32

export function showSide({ sentence, number, symbol, assumptions }) {
  if (find("sentence").dataset.text !== sentence) { // said aloud only when it is another one
    find("sentence").dataset.text = sentence;
    typeset(find("sentence"), sentence);
  }
  const there = typeof number === "number", gauge = find("gauge");
  const term = make("span");
  formula(term, symbol);
  find("number").replaceChildren(...(there ? [term, make("b", {}, ` = ${Charts.number(number)}`)] : []));
  gauge.hidden = !there;
  if (there) {
    const part = 0.5 + Math.log(Math.max(number, 1e-12)) / (2 * Math.log(WIDEST));
    gauge.style.setProperty("--at", `${100 * Math.min(1, Math.max(0, part))}%`);
    gauge.dataset.side = number >= 1 ? "above" : "below";
    gauge.setAttribute("aria-label", `${Charts.number(number)}, where 1 is the boundary`);
  }
  find("conditions").hidden = !(assumptions && assumptions.length);
  const listed = assumptions || [];
  find("assumptions").replaceChildren(...listed.map(({ sentence: words, value: at, should, holds }) => {
    const state = make("span", { className: holds ? "holds" : "fails" }, holds ? "✓ holds" : "✗ fails");
    const numbers = make("span", { className: "value" });
    typeset(numbers, `${Charts.number(at)}, should be ${should}`);
    const name = make("span");
    typeset(name, words);
    return make("li", {}, name, numbers, state);
  }));
}

/* ---- curves ---- */

const GROUPS = [
  { name: "losses", title: "Losses", ylabel: "loss", logy: true, has: (name) => /loss/.test(name) },
  { name: "errors", title: "Errors", ylabel: "error", ymin: 0, has: (name) => /error|accuracy/.test(name) },
  { name: "attention", title: "Attention on the signal", ylabel: "share", ymin: 0,
    has: (name) => /attention/.test(name) },
  { name: "coefficients", title: "Signal γ against noise ρ", ylabel: "coefficient",
    has: (name) => /gamma|rho|signal_learnt|noise_memorised|alignment/.test(name) },
  { name: "both", title: "Signal against noise", ylabel: "product", has: (name) => /signal|noise/.test(name) },
];

/* Keeps the curves of the newest training, and those before it in pale until it is done. */
export function curvesPanel() {
  const places = new Map();
  let now = null, before = null;
  const panel = { stale: false, logTime: false, ask: framed(draw), take, get curves() { return now; } };

  /* Adds a message's moments; one that does not follow on what is here is not this training's. */
  function take(message) {
    const has = now && now.job === message.job ? now.steps.length : 0;
    if (message.from > has) return false;
    if (!now || now.job !== message.job) {
      if (now && (now.done || !before)) before = now;
      now = { job: message.job, steps: [], series: {}, done: false };
    }
    const keep = (list, more) => list.slice(0, message.from).concat(more || []);
    now.steps = keep(now.steps, message.steps);
    for (const [name, { label, mean, low, high }] of Object.entries(message.series)) {
      const had = now.series[name] || { mean: [], low: [], high: [] };
      const [middle, bottom, top] = [keep(had.mean, mean), keep(had.low, low), keep(had.high, high)];
      now.series[name] = { label, mean: middle, low: bottom, high: top };
    }
    Object.assign(now, { done: message.done, of: message.of, label: message.time_label });
    if (now.done) before = null;
    panel.stale = false;
    panel.ask();
    return true;
  }

  /* The chart a group is drawn in, made when its first curve comes. */
  function placeOf(name) {
    if (!places.has(name)) {
      const element = make("div", { className: "chart" });
      element.dataset.group = name;
      places.set(name, element);
    }
    return places.get(name);
  }

  function grouped() {
    const groups = new Map();
    for (const name of Object.keys(now.series)) {
      const known = GROUPS.find((group) => group.has(name));
      const { label } = now.series[name], group = known || { name, title: label, ylabel: label };
      if (!groups.has(group.name)) groups.set(group.name, { ...group, names: [] });
      groups.get(group.name).names.push(name);
    }
    const order = (name) => { const i = GROUPS.findIndex((group) => group.name === name); return i < 0 ? 9 : i; };
    return [...groups.values()].sort((a, b) => order(a.name) - order(b.name));
  }

  const some = (list) => (list.some((value) => value !== null) ? list : null);

  function draw() {
    const charts = find("charts");
    if (!now) return;
    charts.classList.toggle("stale", panel.stale);
    const groups = grouped(), elements = groups.map((group) => placeOf(group.name));
    const there = [...charts.children];
    if (there.length !== elements.length || elements.some((element, i) => element !== there[i])) {
      charts.replaceChildren(...elements);
    }
    for (const group of groups) drawGroup(group);
  }

  /* Of curves that are one and the same so far, the first. */
  function distinct(names) {
    const same = (a, b) => now.series[a].mean.every((value, i) => value === now.series[b].mean[i]);
    return names.filter((name, i) => !names.slice(0, i).some((other) => same(name, other)));
  }

  function drawGroup({ name, title, ylabel, logy, ymin, names: all }) {
    const names = distinct(all);
    const fresh = names.map((key, i) => {
      const { label, mean, low, high } = now.series[key];
      return { name: label || key, mean, low: some(low), high: some(high), dash: i % 6 };
    });
    const pale = !before ? [] : names.filter((key) => key in before.series).map((key) => (
      { name: "", mean: before.series[key].mean, x: before.steps, dash: names.indexOf(key) % 6, faded: true }));
    const ghost = before ? before.steps[before.steps.length - 1] : 0, last = now.steps[now.steps.length - 1] || 0;
    const end = (one) => Charts.number(one.mean.findLast((value) => value !== null));
    const ends = fresh.map((one) => `${one.name} ${end(one)}`).join(", ");
    Charts.lines(placeOf(name), {
      x: now.steps, series: [...fresh, ...pale], xlabel: now.label || "step", ylabel, title, logx: panel.logTime,
      logy, ymin, xmax: before ? Math.max(last, ghost) : null,
      alt: `${title} against ${now.label || "step"}; at the end: ${ends}`,
    });
  }

  return panel;
}

/* ---- phase diagram ---- */

export function diagramPanel(pick) {
  let now = null, point = null;
  const panel = { ask: framed(draw), take, clear, at, covers, stale: false };

  function take(message) {
    if (!now || now.job !== message.job) {
      const values = message.y.values.map(() => message.x.values.map(() => null));
      now = { job: message.job, values };
    }
    Object.assign(now, { x: message.x, y: message.y, label: message.label, low: message.low, high: message.high });
    now.curve = message.curve || null;
    for (const [i, j, value] of message.cells) now.values[j][i] = value;
    const cells = now.values.flat(), there = cells.filter((value) => value !== null).length;
    find("phase-progress").textContent = message.done ? "" : `${there} of ${cells.length} cells`;
    panel.stale = false;
    panel.ask();
  }

  function clear() { now = null; find("diagram").replaceChildren(); find("phase-progress").textContent = ""; }

  function at(setting) { point = setting; panel.ask(); }

  /* Whether a setting lies in the plane that is drawn. */
  function covers(setting) {
    const inside = ({ field, values }) =>
      setting[field] >= Math.min(...values) && setting[field] <= Math.max(...values);
    return Boolean(now) && inside(now.x) && inside(now.y);
  }

  function draw() {
    if (!now) return;
    const { x, y } = now, here = point && { x: point[x.field], y: point[y.field] };
    const inPlane = here && typeof here.x === "number" && typeof here.y === "number";
    find("diagram").classList.toggle("stale", panel.stale);
    const boundary = now.curve ? `, with the boundary ${now.curve.label}` : "";
    Charts.heat(find("diagram"), {
      x: x.values, y: y.values, values: now.values, xlabel: x.label, ylabel: y.label, low: now.low, high: now.high,
      curve: now.curve, point: inPlane ? here : null, pointlabel: "you are here", barlabel: now.label,
      alt: `${now.label} over ${x.label} and ${y.label}${boundary}`,
      onpick: (left, up) => pick({ [x.field]: left, [y.field]: up }),
    });
  }

  return panel;
}
