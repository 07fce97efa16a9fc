/* Charts.heat: a heat map, a theory's boundary, the current point, cells to come. Load it after charts.js. */
(function () {
  "use strict";
  const { add, axes, clipped, colour, joined, leftOf, legend, scale, sheet } = Charts.tools;
  const { spread, titled, usable, widest, words } = Charts.tools;
  const RING = "#d81b60"; // a hue the ramp has not
  let names = 0;

  /* A straight line in the OKLab colour space, dark blue to yellow: equal steps of value look equal, to the
     colour-blind and in greyscale too. (The space: Ottosson, "A perceptual color space", 2020.) */
  function ramp(part) {
    const t = Math.min(1, Math.max(0, part));
    const light = 0.27 + 0.66 * t, a = -0.012 - 0.008 * t, b = -0.095 + 0.235 * t;
    const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const channels = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((v) => Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
    return `rgb(${channels.map((v) => Math.round(255 * v)).join(",")})`;
  }

  /* Borders of the cells: half way between neighbours, in the axis's own scale. */
  function borders(values, log) {
    const warp = log ? Math.log : (v) => v, back = log ? Math.exp : (v) => v;
    const w = values.map(warp), last = w.length - 1;
    if (last === 0) return [back(w[0] - 0.5), back(w[0] + 0.5)];
    const middles = w.slice(1).map((v, i) => (v + w[i]) / 2);
    return [w[0] - (w[1] - w[0]) / 2, ...middles, w[last] + (w[last] - w[last - 1]) / 2].map(back);
  }

  function axisOf(values, wanted) {
    const log = wanted !== false && values.every((value) => value > 0), edges = borders(values, log);
    return { values, edges, scale: scale(edges[0], edges[edges.length - 1], log) };
  }

  function heat(element, options) {
    const heightOf = (w) => Math.round(Math.min(430, Math.max(270, w * 0.78)));
    const { svg, state, width, height } = sheet(element, options, heat, heightOf);
    const across = axisOf(options.x, options.logx), up = axisOf(options.y, options.logy);
    const x = across.scale, y = up.scale;
    const colours = spread([options.values.flat()], false, options.low, options.high, 0);
    const marks = colours.ticks(4).major, barText = widest(marks.map(([, text]) => text));
    const beside = barText + (options.barlabel ? 52 : 32);
    const box = { right: width - beside, top: titled(svg, options), bottom: height - 44 };
    box.left = leftOf(y, box.bottom - box.top, options.ylabel);
    box.top += legend(svg, keys(options), box.left, width, box.top - 4);
    x.place(box.left, box.right);
    y.place(box.bottom, box.top);

    const inside = clipped(svg, box);
    waiting(inside, box);
    const part = (value) => (value - colours.low) / (colours.high - colours.low);
    options.values.forEach((row, j) => row.forEach((value, i) => {
      if (!usable(value, false)) return;
      const left = x.at(across.edges[i]), top = y.at(up.edges[j + 1]);
      const size = { width: x.at(across.edges[i + 1]) - left + 0.5, height: y.at(up.edges[j]) - top + 0.5 };
      add(inside, "rect", { x: left, y: top, ...size, fill: ramp(part(value)), "shape-rendering": "crispEdges" });
    }));
    if (options.curve) {
      const d = joined(options.curve.x, options.curve.y, x, y);
      add(inside, "path", { d, stroke: "#fff", "stroke-width": 4.5, "stroke-opacity": 0.9 });
      const dashed = { "stroke-dasharray": "6 4", "stroke-linecap": "butt" };
      add(inside, "path", { d, stroke: "#111", "stroke-width": 2, ...dashed });
    }
    axes(svg, box, x, y, options, false);
    colourBar(svg, box, marks, part, barText, options.barlabel);
    const { point } = options, held = (s, value) => s.at(Math.min(s.high, Math.max(s.low, value)));
    if (point && usable(point.x, x.log) && usable(point.y, y.log)) ring(svg, held(x, point.x), held(y, point.y));
    if (options.onpick) picking(element, svg, state, across, up, options, width);
    else element.removeAttribute("tabindex");
  }

  /* What the dashed line and the ring are, for the row above the plot. */
  function keys(options) {
    const dashed = { stroke: colour("ink"), "stroke-width": 2, "stroke-dasharray": "6 4" }, found = [];
    if (options.curve) {
      const draw = (g, a, b) => add(g, "path", { d: `M${a} ${b}h24`, ...dashed });
      found.push({ name: options.curve.label || "theory", draw });
    }
    if (options.point) found.push({ name: options.pointlabel || "here", draw: (g, a, b) => ring(g, a + 12, b) });
    return found;
  }

  /* Hatching, seen where a cell has no value yet. */
  function waiting(parent, box) {
    const id = `charts-hatch-${(names += 1)}`;
    const size = { width: box.right - box.left, height: box.bottom - box.top };
    const shape = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
    const pattern = add(add(parent, "defs", {}), "pattern", shape);
    add(pattern, "path", { d: "M0 0V6", stroke: colour("muted"), "stroke-opacity": 0.35, "stroke-width": 2 });
    add(parent, "rect", { x: box.left, y: box.top, ...size, fill: `url(#${id})` });
  }

  function ring(parent, cx, cy) {
    const circle = { cx, cy, r: 6.5, fill: "none" };
    add(parent, "circle", { ...circle, stroke: "#fff", "stroke-width": 5 });
    add(parent, "circle", { ...circle, stroke: RING, "stroke-width": 2.5 });
  }

  function colourBar(svg, box, marks, part, textWidth, label) {
    const left = box.right + 12, steps = 64, height = box.bottom - box.top;
    for (let i = 0; i < steps; i++) {
      const y = box.bottom - ((i + 1) * height) / steps;
      add(svg, "rect", { x: left, y, width: 10, height: height / steps + 0.6, fill: ramp((i + 0.5) / steps) });
    }
    for (const [value, text] of marks) {
      const at = box.bottom - part(value) * height;
      add(svg, "path", { d: `M${left + 10} ${at}h4`, stroke: colour("muted") });
      words(svg, left + 17, at + 4, text);
    }
    const turned = `translate(${left + textWidth + 34} ${(box.top + box.bottom) / 2}) rotate(-90)`;
    if (label) words(svg, 0, 0, label, { "text-anchor": "middle", transform: turned });
  }

  /* Clicks and arrow keys choose a cell. */
  function picking(element, svg, state, across, up, options, width) {
    element.setAttribute("tabindex", "0");
    const index = ({ edges, scale: s }, at) =>
      edges.findIndex((edge, i) => i + 1 < edges.length && (at - s.at(edge)) * (at - s.at(edges[i + 1])) <= 0);
    const cell = (event) => {
      const frame = svg.getBoundingClientRect(), zoom = width / frame.width;
      return [index(across, (event.clientX - frame.left) * zoom), index(up, (event.clientY - frame.top) * zoom)];
    };
    state.click = (event) => {
      const [i, j] = cell(event);
      if (i >= 0 && j >= 0) options.onpick(options.x[i], options.y[j]);
    };
    state.hover = (event) => {
      const [i, j] = cell(event), there = i >= 0 && j >= 0, say = Charts.number;
      svg.style.cursor = there ? "pointer" : "";
      const place = () => `${options.xlabel}: ${say(options.x[i])}, ${options.ylabel}: ${say(options.y[j])}`;
      element.title = there ? `${place()} → ${say(options.values[j][i])}` : "";
    };
    state.key = (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!move || !options.point) return;
      event.preventDefault();
      const step = ({ values, scale: s }, wanted, by) => {
        const far = (i) => Math.abs(s.at(values[i]) - s.at(wanted));
        const here = values.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
        return values[Math.min(values.length - 1, Math.max(0, here + by))];
      };
      options.onpick(step(across, options.point.x, move[0]), step(up, options.point.y, move[1]));
    };
  }

  Charts.heat = heat;
  Charts.ramp = ramp;
})();
