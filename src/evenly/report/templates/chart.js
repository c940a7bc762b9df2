"use strict";
// Draws a chart, as `evenly.report.interactive.plot` describes it, into an element: `Chart.draw(element, chart)`.
// Colours of axes and texts are the page's, so that a change of the theme needs no drawing.
const Chart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725"];
  const DIVERGING = ["#0070BA", "#F2F2F2", "#D9480F"];
  const known = (value) => value !== null && value !== undefined;

  function add(parent, name, attributes = {}, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  // Numbers as a person writes them: four digits, powers for the very large and small, and a true minus.
  function say(value) {
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
    return text.replace("-", "−");
  }

  const power = (exponent) => "10" + [...String(exponent)].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("");

  function linearTicks(low, high, most, whole) {
    const rough = (high - low) / Math.max(most, 1);
    const size = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].find((factor) => factor * size >= rough) * size;
    if (whole) step = Math.max(Math.round(step), 1);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
    return ticks.map((value) => ({ value, text: say(Number(value.toPrecision(12))) }));
  }

  function logTicks(low, high, most) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    if (last - first < 2) {
      const found = [];
      for (let e = first - 1; e <= last + 1; e++) for (const m of [1, 2, 5]) found.push(m * 10 ** e);
      return found.filter((v) => v >= low * 0.999 && v <= high * 1.001).map((value) => ({ value, text: say(value) }));
    }
    const step = Math.max(Math.ceil((last - first) / Math.max(most, 1)), 1);
    const ticks = [];
    for (let e = first; e <= last; e += step) ticks.push({ value: 10 ** e, text: power(e) });
    return ticks;
  }

  const columns = (layer, axis) => (axis === "y"
    ? [layer.y, layer.low, layer.high, layer.counts, ...(layer.dots ?? [])]
    : [layer.x, layer.edges]).filter(Array.isArray);

  function limits(chart, axis) {
    if (chart[axis].range) return chart[axis].range;
    const values = chart.layers.flatMap((layer) => (layer.kind === "rule" ? [layer[axis]] : columns(layer, axis).flat()))
      .filter((v) => typeof v === "number" && (!chart[axis].log || v > 0));
    const grounded = axis === "y" && !chart.y.log && chart.layers.some((l) => l.kind === "histogram" || (l.kind === "bars" && l.bar));
    if (grounded) values.push(0);
    let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    if (chart[axis].log) return low < high ? [low / (high / low) ** 0.04, high * (high / low) ** 0.04] : [low / 2, low * 2];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const heat = chart.layers.find((layer) => layer.kind === "heat");
    if (heat) {
      const half = heat[axis].length > 1 ? Math.abs(heat[axis][1] - heat[axis][0]) / 2 : 0.5;
      return [low - half, high + half];
    }
    const flush = chart.layers.every((layer) => layer.kind === "line" || layer.kind === "rule") && axis === "x";
    const margin = (high - low) * (flush ? 0 : 0.05);
    return [grounded && low === 0 ? 0 : low - margin, high + margin];
  }

  function scaleOf(chart, axis, from, to) {
    const { labels, log } = chart[axis];
    if (labels) {
      const step = (to - from) / labels.length;
      const places = new Map(labels.map((label, i) => [label, from + (axis === "y" ? labels.length - 0.5 - i : i + 0.5) * step]));
      return Object.assign((value) => places.get(value), { step: Math.abs(step) });
    }
    const [low, high] = limits(chart, axis);
    const at = log ? Math.log : (value) => value;
    const whole = at(high) - at(low) || 1;
    return Object.assign((value) => from + ((at(value) - at(low)) / whole) * (to - from), { low, high });
  }

  function hue(colours, share) {
    const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
    const i = Math.min(Math.floor(place), colours.length - 2);
    const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
    return "rgb(" + [1, 3, 5].map((at) => Math.round(part(colours[i], at) + (place - i) * (part(colours[i + 1], at) - part(colours[i], at)))).join() + ")";
  }

  function path(xs, ys) {
    let text = "";
    let pen = "M";
    xs.forEach((x, i) => {
      if (!known(ys[i]) || !known(x)) { pen = "M"; return; }
      text += `${pen}${x.toFixed(1)} ${ys[i].toFixed(1)}`;
      pen = "L";
    });
    return text;
  }

  const draws = {
    line(layer, { svg, x, y }, stops) {
      const xs = layer.x.map((v) => (known(v) ? x(v) : null));
      if (layer.low && layer.high) {
        let run = [];
        const close = () => {
          if (run.length) {
            const there = run.map((i) => `${xs[i].toFixed(1)} ${y(layer.low[i]).toFixed(1)}`);
            const back = run.reverse().map((i) => `${xs[i].toFixed(1)} ${y(layer.high[i]).toFixed(1)}`);
            add(svg, "path", { d: `M${[...there, ...back].join("L")}Z`, fill: layer.colour, "fill-opacity": 0.16 });
          }
          run = [];
        };
        xs.forEach((px, i) => (known(px) && known(layer.low[i]) && known(layer.high[i]) ? run.push(i) : close()));
        close();
      }
      const ys = layer.y.map((v) => (known(v) ? y(v) : null));
      add(svg, "path", { d: path(xs, ys), fill: "none", stroke: layer.colour, "stroke-width": 2, "stroke-linejoin": "round",
        ...(layer.dashed ? { "stroke-dasharray": "7 4" } : {}) });
      xs.forEach((px, i) => {
        if (!known(px) || !known(ys[i])) return;
        if (xs.length <= 12) add(svg, "circle", { cx: px, cy: ys[i], r: xs.length === 1 ? 4.5 : 2.6, fill: layer.colour });
        const band = layer.low && known(layer.low[i]) ? ` [${say(layer.low[i])}, ${say(layer.high[i])}]` : "";
        stops.along(px, layer.x[i], { layer, text: say(layer.y[i]) + band, at: ys[i] });
      });
    },
    points(layer, { svg, x, y }, stops) {
      const shapes = { dot: ["h0", 6], tick: ["m0-7v14", 1.6], cross: ["m-4-4l8 8m0-8l-8 8", 1.6] };
      const [shape, width] = shapes[layer.mark];
      let all = "";
      layer.x.forEach((v, i) => {
        if (!known(v) || !known(layer.y[i])) return;
        const [px, py] = [x(v), y(layer.y[i])];
        all += `M${px.toFixed(1)} ${py.toFixed(1)}${shape}`;
        stops.at(px, py, layer.text ? layer.text[i] : null, layer, v, layer.y[i]);
      });
      add(svg, "path", { d: all, fill: "none", stroke: layer.colour, "stroke-width": width, "stroke-linecap": "round", "stroke-opacity": 0.85 });
    },
    bars(layer, { svg, x, y, turn, turns, bottom }, stops) {
      const width = Math.min((x.step * 0.72) / turns, 90);
      layer.x.forEach((label, i) => {
        if (!known(layer.y[i])) return;
        const middle = x(label) + (turn - (turns - 1) / 2) * width;
        const top = y(layer.y[i]);
        const colour = layer.colours[i];
        if (layer.bar) {
          const ground = Math.min(y(Math.max(0, y.low)), bottom);
          add(svg, "rect", { x: middle - width * 0.44, y: Math.min(top, ground), width: width * 0.88, height: Math.abs(ground - top),
            fill: colour, "fill-opacity": 0.55, stroke: colour });
        } else {
          add(svg, "path", { d: `M${middle} ${top - 7}l7 7l-7 7l-7-7Z`, fill: colour });
        }
        const dots = (layer.dots?.[i] ?? []).filter(known);
        dots.forEach((value, k) => {
          const spread = dots.length > 1 ? width * 0.5 * (k / (dots.length - 1) - 0.5) : 0;
          add(svg, "circle", { cx: middle + spread, cy: y(value), r: 3.2, fill: colour, class: "dot" });
        });
        let text = say(layer.y[i]);
        if (layer.low && known(layer.low[i]) && known(layer.high?.[i])) {
          const [low, high] = [y(layer.low[i]), y(layer.high[i])];
          add(svg, "path", { class: "whisker", d: `M${middle} ${low}V${high}M${middle - 5} ${low}h10M${middle - 5} ${high}h10` });
          text += ` [${say(layer.low[i])}, ${say(layer.high[i])}]`;
        }
        if (dots.length > 1) text += `, n = ${dots.length}`;
        stops.along(x(label), label, { layer: { ...layer, colour }, text, at: top });
      });
    },
    histogram(layer, { svg, x, y }, stops) {
      const ground = y(Math.max(0, y.low));
      layer.counts.forEach((count, i) => {
        if (!known(count)) return;
        const [left, right, top] = [x(layer.edges[i]), x(layer.edges[i + 1]), y(count)];
        add(svg, "rect", { x: left, y: top, width: Math.max(right - left, 0.5), height: Math.max(ground - top, 0), fill: layer.colour,
          "fill-opacity": 0.4, stroke: layer.colour });
        const label = `${say(layer.edges[i])} to ${say(layer.edges[i + 1])}`;
        stops.along((left + right) / 2, label, { layer, text: say(count), at: top });
      });
    },
    heat(layer, { svg, x, y, right, top, bottom }, stops) {
      const colours = layer.diverging ? DIVERGING : VIRIDIS;
      const edges = (values, scale) => {
        const middles = values.map((v) => scale(v));
        const half = scale.step ? scale.step / 2 : middles.length > 1 ? Math.abs(middles[1] - middles[0]) / 2 : 20;
        return middles.map((m) => [m - half, 2 * half]);
      };
      const [across, up] = [edges(layer.x, x), edges(layer.y, y)];
      layer.z.forEach((row, j) => row.forEach((value, i) => {
        const share = known(value) ? (value - layer.limits[0]) / (layer.limits[1] - layer.limits[0]) : null;
        add(svg, "rect", { x: across[i][0], y: up[j][0], width: across[i][1] + 0.3, height: up[j][1] + 0.3,
          ...(share === null ? { class: "unknown" } : { fill: hue(colours, share) }) });
        stops.at(across[i][0] + across[i][1] / 2, up[j][0] + up[j][1] / 2, null, { ...layer, value: known(value) ? say(value) : "unknown" }, layer.x[i], layer.y[j]);
        if (layer.values && value) { // the colour says zero
          const size = Math.min(12, across[i][1] / 2.4); // four signs fit into a cell
          add(svg, "text", { x: across[i][0] + across[i][1] / 2, y: up[j][0] + up[j][1] / 2 + size / 3, "text-anchor": "middle", class: "cell",
            style: `font-size: ${size.toFixed(1)}px`, fill: share > 0.6 ? "#111" : "#fff" }, say(value));
        }
      }));
      const steps = 24;
      for (let k = 0; k < steps; k++) {
        add(svg, "rect", { x: right + 12, y: bottom - ((k + 1) / steps) * (bottom - top), width: 10, height: (bottom - top) / steps + 0.5, fill: hue(colours, k / (steps - 1)) });
      }
      layer.limits.forEach((value, k) => add(svg, "text", { x: right + 26, y: k ? top + 8 : bottom, class: "tick" }, say(value)));
      if (layer.name) add(svg, "text", { class: "axis", "text-anchor": "middle", transform: `translate(${right + 36} ${(top + bottom) / 2}) rotate(-90)` }, layer.name);
    },
    rule(layer, { svg, x, y, left, right, top, bottom }) {
      const upright = known(layer.x);
      const place = upright ? x(layer.x) : y(layer.y);
      if (!Number.isFinite(place)) return;
      add(svg, "path", { class: "rule", d: upright ? `M${place} ${top}V${bottom}` : `M${left} ${place}H${right}` });
      if (upright) {
        const late = place > (left + right) / 2;
        add(svg, "text", { class: "note", x: place + (late ? -5 : 5), y: top + 11, "text-anchor": late ? "end" : "start" }, layer.name);
      } else add(svg, "text", { class: "note", x: right, y: Math.max(place - 5, top + 10), "text-anchor": "end" }, layer.name);
    },
  };

  // Where a pointer or the arrow keys may stop, and what is said there: at one x all series, or a single mark.
  function collector(chart) {
    const along = new Map();
    const single = [];
    return {
      along(px, label, row) {
        const key = px.toFixed(1);
        if (!along.has(key)) along.set(key, { px, label, rows: [] });
        along.get(key).rows.push(row);
      },
      at(px, py, text, layer, x, y) { single.push({ px, py, text, layer, x, y }); },
      list() { return [...along.values()].sort((a, b) => a.px - b.px).concat(single.sort((a, b) => a.px - b.px)); },
      nearest(px, py) {
        let best = null;
        let least = along.size ? 14 : Infinity;
        for (const stop of single) {
          const distance = Math.hypot(stop.px - px, stop.py - py);
          if (distance < least) [best, least] = [stop, distance];
        }
        if (best) return best;
        least = Infinity;
        for (const stop of along.values()) if (Math.abs(stop.px - px) < least) [best, least] = [stop, Math.abs(stop.px - px)];
        return best;
      },
      words(stop) {
        const axis = (name, value) => (name ? `${name}: ${say(value)}` : say(value));
        if (stop.rows) return { head: axis(chart.x.label, stop.label), unit: chart.y.label, rows: stop.rows };
        if (stop.text) return { head: stop.text, rows: [] };
        const rows = stop.layer.kind === "heat" ? [{ layer: { colour: null, name: stop.layer.name || "value" }, text: stop.layer.value }]
          : [{ layer: stop.layer, text: "" }];
        return { head: `${axis(chart.x.label, stop.x)}, ${axis(chart.y.label, stop.y)}`, rows };
      },
    };
  }

  function legend(chart) {
    const entries = chart.layers.filter((layer) => layer.name && !["rule", "heat"].includes(layer.kind));
    if (entries.length < 2) return null;
    const list = document.createElement("ul");
    list.className = "legend";
    const seen = new Set();
    for (const layer of entries) {
      if (seen.has(layer.name)) continue;
      seen.add(layer.name);
      const item = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.className = layer.dashed ? "dashed" : "";
      swatch.style.setProperty("--hue", layer.colour ?? layer.colours?.[0]);
      item.append(swatch, layer.name);
      list.append(item);
    }
    return list;
  }

  // Cut in the middle: labels that begin alike often differ in their ends.
  function shortened(text, room, wide) {
    let kept = text.length;
    let shown = text;
    while (kept > 2 && wide(shown) > room + 1) {
      kept -= 1;
      shown = text.slice(0, Math.ceil(kept / 2)) + "…" + text.slice(text.length - Math.floor(kept / 2));
    }
    return shown;
  }

  function tooltip(element, stop, stops, width) {
    const box = element.querySelector(".tip");
    const { head, unit, rows } = stops.words(stop);
    const title = document.createElement("b");
    title.textContent = head;
    const lines = rows.map(({ layer, text }) => {
      const line = document.createElement("div");
      const swatch = document.createElement("i");
      if (layer.colour) swatch.style.setProperty("--hue", layer.colour);
      line.append(...(layer.colour ? [swatch] : []), [layer.name, text].filter(Boolean).join(": "));
      return line;
    });
    box.replaceChildren(title, ...(unit && rows.length ? [Object.assign(document.createElement("small"), { textContent: unit })] : []), ...lines);
    box.hidden = false;
    const left = stop.px > width / 2 ? stop.px - box.offsetWidth - 12 : stop.px + 12;
    box.style.left = `${Math.max(0, Math.min(left, width - box.offsetWidth))}px`;
    return [head, unit, ...rows.map(({ layer, text }) => [layer.name, text].filter(Boolean).join(" "))].filter(Boolean).join("; ");
  }

  function draw(element, chart, given) {
    const width = given ?? element.clientWidth;
    const key = legend(chart);
    element.replaceChildren(...(key ? [key] : []));
    const tall = parseFloat(element.style.height) || 340;
    const height = (given ? Math.min(tall, 270) : tall) - (key ? (given ? 22 : key.offsetHeight) : 0);
    const svg = add(element, "svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, "aria-hidden": "true", focusable: "false" });
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "12px system-ui, sans-serif";
    const wide = (text) => pen.measureText(text).width;
    const heat = chart.layers.some((layer) => layer.kind === "heat");
    const fits = Math.floor(height / 45);
    const rough = chart.y.labels ? null : limits(chart, "y");
    const yTicks = chart.y.labels ? chart.y.labels.map((label) => ({ value: label, text: label }))
      : chart.y.log ? logTicks(...rough, fits) : linearTicks(...rough, fits, false);
    const most = Math.min(Math.max(...yTicks.map((tick) => wide(tick.text)), 10), width * 0.38);
    const [left, right, top] = [most + (chart.y.label ? 32 : 14), width - (heat ? 52 : 12), 8];
    const x = scaleOf(chart, "x", left, right);
    const labels = chart.x.labels;
    const turned = labels && labels.some((label) => wide(label) > x.step - 6);
    const room = turned ? Math.min(Math.max(...labels.map(wide)), height * 0.5) : Infinity;
    const drop = turned ? room * 0.6 + 14 : 18;
    const bottom = height - drop - (chart.x.label ? 20 : 4);
    const y = scaleOf(chart, "y", bottom, top);
    const xTicks = labels ? labels.map((label) => ({ value: label, text: label }))
      : chart.x.log ? logTicks(x.low, x.high, width / 90) : linearTicks(x.low, x.high, width / 90, chart.x.whole);
    const grid = add(svg, "g", { class: "grid" });
    for (const tick of yTicks) {
      const place = y(tick.value);
      if (!heat && !chart.y.labels) add(grid, "path", { d: `M${left} ${place}H${right}` });
      const shown = wide(tick.text) > most + 1 ? tick.text.slice(0, Math.floor((tick.text.length * most) / wide(tick.text)) - 1) + "…" : tick.text;
      const text = add(svg, "text", { class: "tick", x: left - 7, y: place + 4, "text-anchor": "end" }, shown);
      if (shown !== tick.text) add(text, "title", {}, tick.text);
    }
    const every = labels && !turned ? 1 : labels ? Math.ceil(16 / x.step) : 1;
    xTicks.forEach((tick, i) => {
      const place = x(tick.value);
      if (!heat && !labels) add(grid, "path", { d: `M${place} ${top}V${bottom}` });
      if (i % every) return;
      const shown = turned ? shortened(tick.text, Math.min(room, (place + 4) / 0.82), wide) : tick.text;
      const text = add(svg, "text", { class: "tick", ...(turned ? { transform: `translate(${place + 4} ${bottom + 14}) rotate(-35)`, "text-anchor": "end" }
        : { x: place, y: bottom + 16, "text-anchor": "middle" }) }, shown);
      if (shown !== tick.text) add(text, "title", {}, tick.text);
    });
    add(svg, "path", { class: "frame", d: `M${left} ${top}V${bottom}H${right}` });
    if (chart.x.label) add(svg, "text", { class: "axis", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x.label);
    if (chart.y.label) add(svg, "text", { class: "axis", "text-anchor": "middle", transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)` }, chart.y.label);

    const stops = collector(chart);
    const clip = `clip-${element.id}`;
    add(add(svg, "clipPath", { id: clip }), "rect", { x: left - 5, y: top - 5, width: right - left + 10, height: bottom - top + 10 });
    const inside = add(svg, "g", { "clip-path": `url(#${clip})` });
    const bars = chart.layers.filter((layer) => layer.kind === "bars");
    for (const layer of chart.layers) {
      const turn = bars.indexOf(layer);
      const target = layer.kind === "rule" || layer.kind === "heat" ? svg : inside;
      draws[layer.kind](layer, { svg: target, x, y, left, right, top, bottom, turn, turns: bars.length }, stops);
    }
    const guide = add(svg, "path", { class: "guide" });
    const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    const spoken = Object.assign(document.createElement("div"), { className: "spoken" });
    spoken.setAttribute("role", "status");
    element.append(tip, spoken);

    let place = -1;
    const show = (stop) => {
      guide.setAttribute("d", stop.rows ? `M${stop.px} ${top}V${bottom}` : `M${stop.px - 8} ${stop.py}h16M${stop.px} ${stop.py - 8}v16`);
      return tooltip(element, stop, stops, width);
    };
    const hide = () => { tip.hidden = true; guide.setAttribute("d", ""); place = -1; };
    element.onpointermove = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = width / box.width;
      const stop = stops.nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
      if (stop) show(stop);
    };
    element.onpointerleave = hide;
    element.onblur = hide;
    element.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const all = stops.list();
      if (!all.length) return;
      place = Math.min(Math.max(place + step, 0), all.length - 1);
      spoken.textContent = show(all[place]);
    };
  }

  return { draw };
})();
