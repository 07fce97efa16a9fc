/* Charts as in a paper, without a library: lines with bands here, heat maps in heat.js (load it after this file).

   Charts.lines(element, options) draws into an element and redraws in place. Colours are the page's own:
   --ink, --muted, --grid, --paper, --c1 ... --c6. */
var Charts = (function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "2 3.2", "10 3 2 3", "4 2", "14 5"];
  const MARKS = [
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z", "M-2.8-2.8h5.6v5.6h-5.6z", "M0-3.8L3.6 2.7H-3.6z", "M0-4L4 0L0 4L-4 0z",
    "M-2.9-2.9L2.9 2.9M-2.9 2.9L2.9-2.9", "M-3.8 0H3.8M0-3.8V3.8",
  ];
  const SMALL = 12, LABEL = 13; // font sizes in px
  const states = new WeakMap();
  const ruler = document.createElement("canvas").getContext("2d");
  let names = 0;

  /* ---- numbers as text ---- */

  function superscript(whole) {
    return String(whole).replace(/-/, "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  }

  function scientific(value) {
    let power = Math.floor(Math.log10(Math.abs(value)) + 1e-12);
    let front = +(value / 10 ** power).toPrecision(3);
    if (Math.abs(front) === 10) { front /= 10; power += 1; }
    if (power === 0) return String(front).replace("-", "−");
    const times = front === 1 ? "" : front === -1 ? "−" : String(front).replace("-", "−") + "×";
    return `${times}10${superscript(power)}`;
  }

  /* A number for reading: three digits, powers of ten when it is very large or small. */
  function number(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === Infinity || value === "inf") return "∞";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) return scientific(value);
    return String(size >= 1000 ? Math.round(value) : +value.toPrecision(3)).replace("-", "−");
  }

  /* ---- scales and ticks ---- */

  const ticksAcross = (width, log) => Math.max(2, Math.floor(width / (log ? 68 : 46)));
  const ticksUp = (height) => Math.max(3, Math.floor(height / 32));

  function linearTicks(low, high, count, whole) {
    const raw = Math.max((high - low) / count, whole ? 1 : 0);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((front) => front * power >= raw * (1 - 1e-9)) * power;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
    const largest = Math.max(...ticks.map(Math.abs)), decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const outside = largest >= 1e5 || largest < 1e-3;
    const text = (v) => (v === 0 ? "0" : outside ? scientific(v) : v.toFixed(decimals).replace("-", "−"));
    return { major: ticks.map((value) => [value, text(value)]), minor: [] };
  }

  function logTicks(low, high, count) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), span = Math.log10(high / low);
    const inside = (fronts, stride) => {
      const found = [];
      for (let k = Math.ceil(first / stride) * stride; k <= last; k += stride) {
        for (const front of fronts) {
          const value = +(front * 10 ** k).toPrecision(12);
          if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
        }
      }
      return found;
    };
    const strides = [1, 2, 3, 4, 5, 6, 8, 10].map((stride) => inside([1], stride));
    const choices = [inside([1, 2, 5], 1), ...strides, inside([1, 2, 3, 4, 5, 6, 7, 8, 9], 1)];
    const major = choices.find((values) => values.length >= 2 && values.length <= count + 2);
    if (!major) return linearTicks(low, high, count);
    const outside = major.some((value) => value >= 1e4 || value < 0.000999);
    const minor = span > 9 ? [] : inside([2, 3, 4, 5, 6, 7, 8, 9], 1).filter((value) => !major.includes(value));
    return { major: major.map((v) => [v, outside ? (v === 1 ? "1" : scientific(v)) : String(v)]), minor };
  }

  function scale(low, high, log) {
    const warp = log ? Math.log10 : (value) => value;
    const start = warp(low), length = warp(high) - start || 1;
    return {
      low, high, log, whole: false,
      place(from, to) { this.from = from; this.to = to; return this; },
      at(value) { return this.from + ((warp(value) - start) / length) * (this.to - this.from); },
      ticks(count) { return log ? logTicks(low, high, count) : linearTicks(low, high, count, this.whole); },
    };
  }

  const usable = (value, log) => typeof value === "number" && Number.isFinite(value) && (!log || value > 0);

  /* The range of the data, a little wider; lows of a band do not stretch a logarithmic axis. */
  function spread(lists, log, least, most, pad) {
    let low = Infinity, high = -Infinity;
    for (const list of lists) {
      for (const value of list || []) {
        if (usable(value, log)) [low, high] = [Math.min(low, value), Math.max(high, value)];
      }
    }
    if (low > high) [low, high] = [0.1, 1];
    if (low === high) {
      const half = Math.abs(low) / 2 || 0.5;
      [low, high] = log ? [low / 2, high * 2] : [low - half, high + half];
    }
    const more = log ? (high / low) ** pad : (high - low) * pad;
    [low, high] = log ? [low / more, high * more] : [low - more, high + more];
    if (usable(least, log)) low = least;
    if (usable(most, log)) high = most;
    if (!(high > low)) high = log ? low * 10 : low + 1;
    return scale(low, high, log);
  }

  /* ---- drawing ---- */

  const colour = (name) => `var(--${name})`;

  function add(parent, tag, attributes, text) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  function widthOf(text, size) {
    ruler.font = `${size}px ${ruler.family || "sans-serif"}`;
    return ruler.measureText(text).width;
  }

  const widest = (texts) => Math.max(0, ...texts.map((text) => widthOf(text, SMALL)));

  /* A piece of text; what follows a ^ is raised: n SNR^q, x^(1/2). */
  function words(parent, x, y, text, more) {
    const node = add(parent, "text", { x, y, fill: colour("ink"), "font-size": SMALL, ...more });
    const pieces = String(text).split(/\^(\([^)]*\)|[\w*]+)/);
    pieces.forEach((piece, i) => {
      if (i % 2) add(node, "tspan", { dy: "-.35em", "font-size": "75%" }, piece.replace(/^\((.*)\)$/, "$1"));
      else if (piece) add(node, "tspan", { dy: i ? ".27em" : null }, piece);
    });
    return node;
  }

  /* The empty sheet: an svg as wide as its element, drawn again when that width changes. */
  function sheet(element, options, draw, heightOf) {
    let state = states.get(element);
    if (!state) {
      state = {};
      states.set(element, state);
      if (typeof ResizeObserver !== "undefined") {
        new ResizeObserver(() => {
          if (element.clientWidth && element.clientWidth !== state.width) state.draw(element, state.options);
        }).observe(element);
      }
      element.addEventListener("pointermove", (event) => state.hover && state.hover(event));
      element.addEventListener("pointerleave", () => state.leave && state.leave());
      element.addEventListener("click", (event) => state.click && state.click(event));
      element.addEventListener("keydown", (event) => state.key && state.key(event));
    }
    const silent = { hover: null, leave: null, click: null, key: null };
    Object.assign(state, { options, draw, width: element.clientWidth }, silent);
    const width = Math.max(state.width || 560, 200), height = options.height || heightOf(width);
    ruler.family = getComputedStyle(element).fontFamily;
    element.setAttribute("role", options.onpick ? "application" : "img");
    element.setAttribute("aria-label", options.alt || options.title || "");
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    Object.assign(svg.style, { display: "block", width: "100%", height: "auto", overflow: "visible" });
    element.replaceChildren(svg);
    return { svg, state, width, height };
  }

  function axes(svg, box, x, y, options, grid) {
    const under = add(svg, "g", { "stroke-width": 1 });
    const across = x.ticks(ticksAcross(box.right - box.left, x.log));
    const up = y.ticks(ticksUp(box.bottom - box.top));
    for (const [value, text] of up.major) {
      const at = y.at(value);
      if (grid) add(under, "path", { d: `M${box.left} ${at}H${box.right}`, stroke: colour("grid") });
      add(under, "path", { d: `M${box.left - 4} ${at}h4`, stroke: colour("muted") });
      words(svg, box.left - 7, at + 4, text, { "text-anchor": "end" });
    }
    for (const [value, text] of across.major) {
      const at = x.at(value);
      if (grid) add(under, "path", { d: `M${at} ${box.top}V${box.bottom}`, stroke: colour("grid") });
      add(under, "path", { d: `M${at} ${box.bottom}v4`, stroke: colour("muted") });
      words(svg, at, box.bottom + 17, text, { "text-anchor": "middle" });
    }
    const small = across.minor.map((value) => `M${x.at(value)} ${box.bottom}v2.5`).join("")
      + up.minor.map((value) => `M${box.left - 2.5} ${y.at(value)}h2.5`).join("");
    if (small) add(under, "path", { d: small, stroke: colour("muted") });
    const closed = grid ? "" : `V${box.top}z`;
    const frame = `M${box.left} ${box.top}V${box.bottom}H${box.right}${closed}`;
    add(under, "path", { d: frame, fill: "none", stroke: colour("muted") });
    const large = { "text-anchor": "middle", "font-size": LABEL };
    const turned = `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`;
    words(svg, (box.left + box.right) / 2, box.bottom + 36, options.xlabel || "", large);
    words(svg, 0, 0, options.ylabel || "", { ...large, transform: turned });
  }

  /* A title, if there is one; returns where the plot may begin. */
  function titled(svg, options) {
    if (options.title) words(svg, 0, 14, options.title, { "font-size": 14, "font-weight": 600 });
    return options.title ? 30 : 10;
  }

  /* A group that draws nothing outside a box. */
  function clipped(svg, box) {
    const id = `charts-clip-${(names += 1)}`, size = { width: box.right - box.left, height: box.bottom - box.top };
    add(add(add(svg, "defs", {}), "clipPath", { id }), "rect", { x: box.left, y: box.top, ...size });
    const round = { "stroke-linecap": "round", "stroke-linejoin": "round" };
    return add(svg, "g", { "clip-path": `url(#${id})`, fill: "none", ...round });
  }

  /* Where the axes stand, given how wide the numbers beside them are. */
  function leftOf(y, height, label) {
    const ticks = y.ticks(ticksUp(height)).major;
    return Math.ceil(widest(ticks.map(([, text]) => text))) + 9 + (label ? 20 : 2);
  }

  function marker(parent, look, x, y) {
    const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
    const pen = { stroke: look.stroke, "stroke-width": 1.5, fill: colour("paper") };
    add(parent, "path", { d: look.mark, transform, ...pen });
  }

  function sample(parent, look, x, y, length) {
    const pen = { stroke: look.stroke, "stroke-width": 2, "stroke-dasharray": look.dash, fill: "none" };
    add(parent, "path", { d: `M${x} ${y}h${length}`, ...pen });
    if (look.mark) marker(parent, look, x + length / 2, y);
  }

  /* A row of samples and names above the plot, in as many lines as they need; returns their height. */
  function legend(svg, entries, left, width, top) {
    let x = left, y = top + 8;
    for (const entry of entries) {
      const needs = 30 + widthOf(entry.name, SMALL) + 16;
      if (x > left && x + needs > width) { x = left; y += 18; }
      entry.draw(svg, x, y);
      words(svg, x + 30, y + 4, entry.name);
      x += needs;
    }
    return entries.length ? y + 14 - top : 0;
  }

  function lookOf(series, order) {
    const which = (series.dash === undefined || series.dash === null ? order : series.dash) % 6;
    if (series.theory) return { stroke: colour("ink"), dash: "5 4", mark: null };
    return { stroke: colour("c" + (which + 1)), dash: DASHES[which] || null, mark: MARKS[which] };
  }

  /* Points joined by lines; nothing is drawn across a gap, and a point alone becomes a dot. */
  function joined(xs, ys, x, y) {
    let path = "", run = 0;
    for (let i = 0; i < xs.length; i++) {
      if (!usable(ys[i], y.log) || !usable(xs[i], x.log)) { path += run === 1 ? "h.1" : ""; run = 0; continue; }
      path += `${run ? "L" : "M"}${x.at(xs[i]).toFixed(1)} ${y.at(ys[i]).toFixed(1)}`;
      run += 1;
    }
    return path + (run === 1 ? "h.1" : "");
  }

  function band(xs, lows, highs, x, y) {
    let path = "", upper = [], lower = [];
    const close = () => {
      if (upper.length > 1) path += `M${upper.join("L")}L${lower.reverse().join("L")}z`;
      upper = []; lower = [];
    };
    for (let i = 0; i < xs.length; i++) {
      if (!usable(xs[i], x.log) || !usable(highs[i], y.log) || !usable(lows[i], false)) { close(); continue; }
      const at = x.at(xs[i]).toFixed(1);
      upper.push(`${at} ${y.at(highs[i]).toFixed(1)}`);
      lower.push(`${at} ${(y.log && lows[i] <= 0 ? y.from + 10 : y.at(lows[i])).toFixed(1)}`);
    }
    close();
    return path;
  }

  /* A few of the points of a line, evenly spaced across the plot, for its markers. */
  function stations(xs, ys, x, y, order, count) {
    const found = [], gap = (x.to - x.from) / 7, offset = (gap * (order + 0.5)) / Math.max(count, 1);
    const few = xs.length <= 12;
    let next = x.from + offset;
    for (let i = 0; i < xs.length; i++) {
      if (!usable(xs[i], x.log) || !usable(ys[i], y.log)) continue;
      const at = x.at(xs[i]);
      if (!few && at < next) continue;
      while (next <= at) next += gap;
      found.push([at, y.at(ys[i])]);
    }
    return found;
  }

  /* Heights of labels beside the plot: near the ends of their lines, never on top of each other. */
  function apart(heights, gap, top, bottom) {
    const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]), placed = [];
    let last = -Infinity;
    for (const i of order) { placed[i] = last = Math.max(heights[i], last + gap, top); }
    let limit = bottom;
    for (const i of order.reverse()) { placed[i] = Math.min(placed[i], limit); limit = placed[i] - gap; }
    return placed;
  }

  function lines(element, options) {
    const heightOf = (w) => Math.round(Math.min(340, Math.max(210, w * 0.6)));
    const { svg, state, width, height } = sheet(element, options, lines, heightOf);
    const dressed = (one, i) => ({ ...one, x: one.x || options.x, look: lookOf(one, i) });
    const series = (options.series || []).map(dressed);
    const shown = series.filter((one) => !one.faded);
    const labels = shown.map((one) => one.name || "");
    const beside = labels.length > 1 && widest(labels) + 34 <= width * 0.28;
    const logx = Boolean(options.logx), logy = Boolean(options.logy);
    const margin = beside ? widest(labels) + 40 : 14;
    const box = { right: width - margin, top: titled(svg, options), bottom: height - 44 };
    const values = series.flatMap((one) => [one.mean, one.high, logy ? null : one.low]);
    const y = spread(values, logy, options.ymin, options.ymax, 0.04);
    box.left = leftOf(y, box.bottom - box.top, options.ylabel);
    if (!beside && labels.some(Boolean)) {
      const entries = shown.map((one) => ({ name: one.name, draw: (g, a, b) => sample(g, one.look, a, b, 24) }));
      box.top += legend(svg, entries, box.left, width, box.top - 4);
    }
    const x = spread(series.map((one) => one.x), logx, options.xmin, options.xmax, 0).place(box.left, box.right);
    x.whole = series.every((one) => one.x.every(Number.isInteger)); // steps have no halves
    y.place(box.bottom, box.top);
    axes(svg, box, x, y, options, true);

    const plot = clipped(svg, { left: box.left, top: box.top - 5, right: box.right + 5, bottom: box.bottom });
    for (const one of shown) {
      if (!one.low || !one.high) continue;
      const d = band(one.x, one.low, one.high, x, y);
      add(plot, "path", { d, fill: one.look.stroke, "fill-opacity": 0.16, stroke: "none" });
    }
    series.forEach((one, i) => {
      const pen = { stroke: one.look.stroke, "stroke-dasharray": one.look.dash };
      if (one.faded) pen["stroke-opacity"] = 0.25;
      add(plot, "path", { d: joined(one.x, one.mean, x, y), "stroke-width": one.theory ? 1.6 : 2, ...pen });
      if (!one.look.mark || one.faded) return;
      for (const [at, up] of stations(one.x, one.mean, x, y, i, series.length)) marker(plot, one.look, at, up);
    });
    if (options.mark && usable(options.mark.x, logx)) upright(svg, box, x, options.mark);
    if (beside) {
      const ends = shown.map((one) => {
        const last = one.mean.findLast((value) => usable(value, logy));
        return last === undefined ? box.bottom : Math.min(box.bottom, Math.max(box.top, y.at(last)));
      });
      apart(ends, 17, box.top + 4, box.bottom - 4).forEach((at, i) => {
        sample(svg, shown[i].look, box.right + 8, at, 22);
        words(svg, box.right + 35, at + 4, labels[i]);
      });
    }
    readout(svg, state, box, x, y, shown.filter((one) => one.x === shown[0].x), width);
  }

  /* A marked value of x, such as a theorem's own time. */
  function upright(svg, box, x, mark) {
    const at = x.at(mark.x), left = at > (box.left + box.right) / 2;
    const pen = { stroke: colour("ink"), "stroke-dasharray": "2 3" };
    add(svg, "path", { d: `M${at} ${box.top}V${box.bottom}`, "stroke-width": 1.2, ...pen });
    words(svg, at + (left ? -6 : 6), box.top + 10, mark.label || "", { "text-anchor": left ? "end" : "start" });
  }

  /* Values under the pointer, at the nearest point of the first line. */
  function readout(svg, state, box, x, y, shown, width) {
    const group = add(svg, "g", { "pointer-events": "none" });
    state.leave = () => group.replaceChildren();
    state.hover = (event) => {
      group.replaceChildren();
      const frame = svg.getBoundingClientRect(), at = ((event.clientX - frame.left) / frame.width) * width;
      const xs = shown.length ? shown[0].x : [];
      if (at < box.left - 4 || at > box.right + 4) return;
      const distance = (i) => (usable(xs[i], x.log) ? Math.abs(x.at(xs[i]) - at) : Infinity);
      const best = xs.reduce((found, _, i) => (distance(i) < distance(found) ? i : found), 0);
      if (!usable(xs[best], x.log)) return;
      const here = x.at(xs[best]);
      const rows = [number(xs[best])].concat(shown.map((one) => `${one.name}  ${number(one.mean[best])}`));
      const wide = widest(rows) + 18, flip = here + wide + 12 > box.right;
      const left = flip ? Math.max(2, here - wide - 8) : here + 8;
      const tall = rows.length * 16 + 8, card = { x: left, y: box.top + 2, width: wide, height: tall, rx: 3 };
      add(group, "path", { d: `M${here} ${box.top}V${box.bottom}`, stroke: colour("muted"), "stroke-width": 1 });
      add(group, "rect", { ...card, fill: colour("paper"), "fill-opacity": 0.93, stroke: colour("grid") });
      rows.forEach((row, i) => {
        words(group, left + 8, box.top + 17 + i * 16, row, { "font-weight": i ? null : 600 });
      });
      for (const one of shown) {
        if (!usable(one.mean[best], y.log)) continue;
        add(group, "circle", { cx: here, cy: y.at(one.mean[best]), r: 3.5, fill: one.look.stroke });
      }
    };
  }

  const tools = {
    add, axes, clipped, colour, joined, leftOf, legend, scale, sheet, spread, titled, usable, widest, words,
  };
  return { lines, number, tools };
})();
