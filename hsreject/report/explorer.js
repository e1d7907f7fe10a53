"use strict";
// The controls of the page, one form, are all its state: `update` reads and shows them, `set` changes
// them, and the address holds those that differ from how the page opened.
const $ = (id) => document.getElementById(id);
const page = JSON.parse($("payload").textContent);
const { width: W, height: H, systems } = page;
const form = $("controls"), fingers = new Map();
const BOX = { width: 420, left: 44, right: 412, top: 10, bottom: 196, floor: 0.9 }; // of the curve
let state = {}, opened = {}, asked = 0, linkTimer = 0, travelled = 0;

const percent = (share) => (Number.isFinite(share) ? (100 * share).toFixed(1) + " %" : "–");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const within = (low, value, high) => Math.max(low, Math.min(high, value));
const hectares = (area) => (page.areas ? `${(+area.toPrecision(3)).toLocaleString("en")} ha` : "");
const span = ([low, high]) => (Number.isFinite(low) ? `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}` : "");

// Writes into the nodes of these names, as text: a class name cannot bring markup.
function fill(node, texts) {
  for (const place of node.querySelectorAll("[data-name]")) {
    const text = texts[place.dataset.name];
    if (text === undefined) continue;
    place.textContent = typeof text === "number" ? percent(text) : text;
    place.dataset.value = text;
  }
}

// Arrays come deflated, in base64: as steps from one number to the next, or as planes, each but the
// first as what changes from the one before.
async function unpack({ packed, type, steps, planes }) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = new globalThis[type](await new Response(stream).arrayBuffer()), size = all.length / planes;
  if (steps) for (let i = 1; i < all.length; i++) all[i] += all[i - 1];
  if (!planes) return all;
  for (let i = size; i < all.length; i++) all[i] ^= all[i - size];
  return Array.from({ length: planes }, (_, plane) => all.subarray(plane * size, (plane + 1) * size));
}

async function unpackAll(node) {
  for (const [name, value] of Object.entries(node)) {
    if (value?.packed) node[name] = await unpack(value);
    else if (value && typeof value === "object") await unpackAll(value);
  }
}

// ---- Operating points. With a threshold, point k rejects the ranks below k; a system without one has
// a map for each point, where rank 0 is rejected. an, mn, ar, mr count test pixels: accurate or
// misclassified, not rejected or rejected; nRejected counts rejected pixels of the map.
const planeOf = (s, k) => (s.thresholds ? 0 : k);
const cutOf = (s, k) => (s.thresholds ? k : 1);
const thresholdOf = (s, k) => (s.thresholds ? s.thresholds[k] ?? Infinity : NaN);
const accuracy = (s, k) => s.an[k] / (s.an[k] + s.mn[k]);
const refused = (s, k) => (s.ar[k] + s.mr[k]) / s.n;
const costAt = (s, k) => (s.mn[k] / s.n + state.cost * refused(s, k)).toFixed(3);

// The point whose number in an ascending column is nearest; halfway, the one that rejects less.
function nearest(column, wanted) {
  const found = column.findIndex((number) => number >= wanted), above = found < 0 ? column.length - 1 : found;
  return above > 0 && wanted - column[above - 1] <= column[above] - wanted ? above - 1 : above;
}
// The winners are listed with the lowest cost that they win at, the one that rejects least first.
const cheapest = (s, cost) => (s.n ? s.winners.find(([, lowest]) => cost >= lowest - 1e-12)[0] : 0);
const pointOf = (s) => (state.by === "cost" ? cheapest(s, state.cost) : nearest(s.nRejected, state.r * s.pixels));
// The last point that keeps a pixel.
const lastKept = (s, i) => (s.thresholds ? s.ranks[0][i]
  : Math.max(0, s.ranks.reduce((count, plane) => count + plane[i], 0) - 1));

// The 95 % interval of a share, from the counts and the formula of hsreject.measures.uncertainty.Clusters:
// `squares` sums the squared numbers of samples in each block, whose errors are correlated.
function interval(s, k, right, n, squares) {
  const nEffective = n / (1 + s.correlation[planeOf(s, k)] * (squares / n - 1)), z2OverN = (s.critical ?? NaN) ** 2 / nEffective, share = right / n;
  const middle = share + z2OverN / 2, half = Math.sqrt(z2OverN * (share * (1 - share) + z2OverN / 4));
  return [(middle - half) / (1 + z2OverN), (middle + half) / (1 + z2OverN)];
}
const intervalAt = (s, k) => interval(s, k, s.an[k], s.an[k] + s.mn[k], s.squares[k]);

// ---- The map
const holds = (label, truth) => label === truth || !!page.below?.[label]?.includes(truth); // an answer may be a group
const LAYERS = { // what a pixel shows: 0 is nothing, others are places in page.colors
  labels: (s, labels) => labels,
  outcome: (s, labels) => labels.map((label, i) => label && page.test[i] && (holds(label, page.test[i]) ? 1 : 2)),
  confidence: (s, labels) => labels.map((label, i) => label && 1 + (254 * s.nRejected[lastKept(s, i)]) / s.pixels),
  reference: () => page.reference,
};
const sheet = (width, height) => new OffscreenCanvas(width, height).getContext("2d");
const veil = sheet(1, 1);
const views = [...document.querySelectorAll("#views figure")].map((figure) => (
  { figure, canvas: figure.querySelector("canvas"), image: sheet(W, H), hatched: sheet(W, H) }));
const shown = () => views.filter((view) => !view.figure.hidden);
// The colors of a layer as 32-bit words, mixed with this share of the color of what is faded.
function colorsOf(layer, share) {
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)), paper = rgb(style("--faded"));
  const alone = state.only && (layer === "labels" || layer === "reference");
  return Uint32Array.from([0, ...page.colors[layer].map((hex, i) => {
    const faded = alone && i + 1 !== state.only ? 0.9 : share;
    const [r, g, b] = rgb(hex).map((c, channel) => c + faded * (paper[channel] - c));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  })]);
}

function paint(view) {
  const { system: s, k } = view, plane = planeOf(s, k), labels = s.labels[plane], ranks = s.ranks[plane];
  const layer = [s.name, plane, state.layer].join(), rejects = state.layer !== "reference", cut = cutOf(s, k);
  if (view.layer !== layer) Object.assign(view, { layer, keys: LAYERS[state.layer](s, labels) });
  const plain = colorsOf(state.layer, 0), faded = colorsOf(state.layer, 0.76), { keys } = view;
  const [image, hatched] = (view.sheets ??= [new ImageData(W, H), new ImageData(W, H)]);
  const [imageWords, hatchedWords] = [image, hatched].map(({ data }) => new Uint32Array(data.buffer));
  const all = new Uint32Array(256), kept = new Uint32Array(256), area = new Float64Array(256);
  for (let i = 0; i < labels.length; i++) {
    const isKept = ranks[i] >= cut, key = keys[i];
    all[labels[i]]++;
    if (isKept) { kept[labels[i]]++; area[labels[i]] += page.areas ? page.areas[Math.floor(i / W)] : 0; }
    imageWords[i] = isKept || !rejects ? plain[key] : faded[key];
    hatchedWords[i] = isKept || !rejects || !key ? 0 : 0xff000000;
  }
  view.image.putImageData(image, 0, 0);
  view.hatched.putImageData(hatched, 0, 0);
  area[0] = 0; // without data
  Object.assign(view, { all, kept, area });
}

function hatching(ratio) {
  const size = Math.round(6 * ratio), pen = sheet(size, size);
  Object.assign(pen, { strokeStyle: style("--hatch"), lineWidth: ratio });
  for (const x of [-size, 0, size]) { pen.moveTo(x - 1, size + 1); pen.lineTo(x + size + 1, -1); }
  pen.stroke();
  return veil.createPattern(pen.canvas, "repeat");
}
const scaleOf = (canvas) => Math.min(canvas.clientWidth / W, canvas.clientHeight / H) * state.zoom;

// Picture, layer and hatching over each other; the hatching has the scale of the screen.
function draw({ canvas, image, hatched }) {
  if (!canvas.clientWidth || !canvas.clientHeight) return;
  const ratio = Math.max(1, devicePixelRatio), scale = scaleOf(canvas) * ratio, context = canvas.getContext("2d");
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  for (const one of [context, veil]) {
    Object.assign(one.canvas, { width, height }); // which clears it, too
    one.setTransform(scale, 0, 0, scale, width / 2 - state.x * scale, height / 2 - state.y * scale);
    one.imageSmoothingEnabled = scale < 1;
  }
  veil.drawImage(hatched.canvas, 0, 0);
  veil.resetTransform();
  Object.assign(veil, { globalCompositeOperation: "source-in", fillStyle: hatching(ratio) });
  veil.fillRect(0, 0, width, height);
  context.globalAlpha = 1 - 0.6 * state.opacity;
  if (page.picture) context.drawImage($("picture"), 0, 0, W, H);
  context.globalAlpha = state.opacity;
  context.drawImage(image.canvas, 0, 0);
  Object.assign(context, { strokeStyle: "#fff", lineWidth: (2 * ratio) / scale, shadowColor: "#000", shadowBlur: 5 });
  if (state.pixel >= 0) context.strokeRect(state.pixel % W, Math.floor(state.pixel / W), 1, 1);
  context.resetTransform();
  context.drawImage(veil.canvas, 0, 0);
}

// ---- Numbers
function showNumbers({ system: s, k, area }, place) {
  const [low, high] = intervalAt(s, k), errors = s.mn[k] + s.mr[k];
  fill($(`numbers${place}`), { kept: 1 - s.nRejected[k] / s.pixels, accuracy: accuracy(s, k), low, high, refused: refused(s, k),
    before: (s.an[k] + s.ar[k]) / s.n, caught: s.mr[k] / errors, errors: errors.toLocaleString("en"), threshold: String(thresholdOf(s, k)),
    hectares: hectares(area.reduce((sum, one) => sum + one)) });
  $(`now${place}`).innerHTML = s.an[k] + s.mn[k] === 0 ? "" : // nothing but numbers
    `<line x1="${xOf(s, k)}" x2="${xOf(s, k)}" y1="${yOf(low)}" y2="${yOf(high)}"/><circle cx="${xOf(s, k)}" cy="${yOf(accuracy(s, k))}" r="6.5"/>`;
}

const xOf = (s, k) => BOX.left + refused(s, k) * (BOX.right - BOX.left);
const yOf = (share) => BOX.bottom - within(0, (share - BOX.floor) / (1 - BOX.floor), 1) * (BOX.bottom - BOX.top);

// The curves of all systems with their intervals, and lines across down to the lowest accuracy of which
// a tenth is kept.
function drawCurves() {
  const points = systems.map((s) => {
    const rejected = s.ar.map((count, k) => count + s.mr[k]), places = Array.from({ length: 241 }, (_, i) => (i / 240) * s.n);
    const drawn = s.thresholds ? [...new Set(places.map((place) => nearest(rejected, place)))] : [...s.nRejected.keys()];
    return drawn.filter((k) => s.an[k] + s.mn[k] > 0);
  });
  const lowest = Math.min(1, ...systems.flatMap((s, i) => points[i].filter((k) => refused(s, k) < 0.9).map((k) => accuracy(s, k))));
  BOX.floor = Math.min(Math.floor(10 * lowest) / 10, 0.9);
  const step = [0.02, 0.05, 0.1, 0.2].find((one) => (1 - BOX.floor) / one < 6);
  let lines = "";
  for (let share = 1; share > BOX.floor - step / 2; share -= step) lines += `<line class="grid" x1="${BOX.left}" x2="${BOX.right}"
    y1="${yOf(share)}" y2="${yOf(share)}"/><text class="end" x="${BOX.left - 7}" y="${yOf(share) + 4}">${(100 * share).toFixed(0)} %</text>`;
  const path = (s, ks, height) => ks.map((k) => `${xOf(s, k).toFixed(1)} ${yOf(height(k)).toFixed(1)}`);
  $("curves").innerHTML = lines + systems.map((s, i) => {
    const line = path(s, points[i], (k) => accuracy(s, k)), [lower, upper] = [0, 1].map((end) => path(s, points[i], (k) => intervalAt(s, k)[end]));
    const dots = s.thresholds ? "" : points[i].map((k) => `<circle cx="${xOf(s, k)}" cy="${yOf(accuracy(s, k))}" r="3"/>`).join("");
    const band = s.critical ? `<path class="band" d="M${[...upper, ...lower.reverse()].join("L")}Z"/>` : "";
    return `<g data-system="${i}">${band}<path d="M${line.join("L")}"/>${dots}</g>`;
  }).join("");
}

// User's accuracy is the share of a label that is right, producer's that of a class that has its label.
function showClasses({ system: s, k, all, kept, area }, place) {
  const labels = s.sampleLabels[planeOf(s, k)], ranks = s.sampleRanks[planeOf(s, k)], cut = cutOf(s, k);
  const count = () => ({ n: new Uint32Array(256), squares: new Float64Array(256), inBlock: new Uint32Array((page.classes.length + 1) * s.blocks) });
  const user = count(), producer = count(), right = new Uint32Array(256), found = new Uint32Array(256);
  labels.forEach((label, i) => {
    if (ranks[i] < cut) return;
    for (const [of, code] of [[user, label], [producer, s.truth[i]]]) {
      of.n[code]++;
      of.squares[code] += 2 * of.inBlock[code * s.blocks + s.sampleBlocks[i]]++ + 1;
    }
    right[label] += holds(label, s.truth[i]);
    found[s.truth[i]] += holds(label, s.truth[i]);
  });
  for (const row of $("classes").tBodies[0].rows) {
    const code = +row.dataset.code, share = kept[code] / all[code];
    const shares = (of, name, hits) => ({ [name + place]: hits[code] / of.n[code], [`${name}Span${place}`]: of.n[code] ? span(interval(s, k, hits[code], of.n[code], of.squares[code])) : "" });
    fill(row, { [`all${place}`]: all[code] / s.pixels, [`kept${place}`]: share, [`area${place}`]: hectares(area[code]), ...shares(user, "user", right), ...shares(producer, "producer", found) });
    row.style.setProperty("--kept", share || 0);
  }
}

// A bar of 1, 2, 5, 10, ... metres, not longer than this many dots, and where north is.
function showScale(canvas, longest = 120) {
  const [metres, north] = page.ground, dot = metres / scaleOf(canvas), power = 10 ** Math.floor(Math.log10(longest * dot));
  const length = power * [5, 2, 1].find((step) => step * power <= longest * dot);
  fill($("scale"), { length: length < 1000 ? `${length} m` : `${length / 1000} km` });
  $("scale").style.setProperty("--length", `${length / dot}px`);
  $("scale").style.setProperty("--north", `${north}deg`);
}

function showPixel() {
  const i = state.pixel, row = Math.floor(i / W), column = i % W, [x, dx, y, dy] = page.place || [];
  if ($("pixel").classList.toggle("empty", i < 0)) return;
  const named = (code) => (code ? page.classes[code - 1] : "none"), known = page.reference?.[i];
  const place = page.place ? `, x ${+(x + column * dx).toFixed(3)}, y ${+(y + row * dy).toFixed(3)}` : "";
  fill($("pixel"), { where: `row ${row * page.step}, column ${column * page.step}${place}`,
    reference: named(known) + (known && !page.test[i] ? ", not a test pixel" : "") });
  shown().forEach(({ system: s, k }, n) => {
    const plane = planeOf(s, k), label = s.labels[plane][i], last = lastKept(s, i);
    const sure = s.thresholds ? `confidence ${+s.thresholds[last].toPrecision(4)}, ` : "";
    fill($("pixel"), { [`label${n}`]: label ? `${named(label)}, ${s.ranks[plane][i] < cutOf(s, k) ? "rejected" : "kept"}` : "no data",
      [`sure${n}`]: label ? `${sure}kept until ${percent(s.nRejected[last] / s.pixels)} of the scene is rejected` : "" });
  });
}

// ---- Changes
function update() {
  asked = 0;
  const pair = state.beside >= 0 && state.beside !== state.system, places = pair ? [state.system, state.beside] : [state.system];
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  document.body.className = [pair ? "pair" : "single", state.zoom > 1 ? "zoomed" : "whole", state.layer].join(" ");
  views[1].figure.hidden = !pair;
  places.forEach((system, place) => {
    const view = Object.assign(views[place], { system: systems[system], k: pointOf(systems[system]) });
    const picture = [system, view.k, state.layer, state.only, state.dark].join();
    if (view.picture !== picture) paint(Object.assign(view, { picture }));
    fill(document, { [`system${place}`]: view.system.name });
    for (const show of [draw, showNumbers, showClasses]) show(view, place);
  });
  for (const node of document.querySelectorAll("[data-system]")) node.dataset.place = places.indexOf(+node.dataset.system);
  const { system: s, k } = views[0], best = cheapest(s, state.cost);
  if (state.by === "cost") form.elements.r.value = s.nRejected[k] / s.pixels;
  const below = s.thresholds ? `confidence below ${thresholdOf(s, k).toPrecision(4)}` : `point ${k + 1} of ${s.points}`;
  fill(document, { share: s.nRejected[k] / s.pixels, below, right: accuracy(s, k), cost: state.cost.toFixed(2),
    best: s.nRejected[best] / s.pixels, least: costAt(s, best), here: costAt(s, k) });
  showPixel();
  if (page.ground) showScale(views[0].canvas);
  const told = Object.entries(state).filter(([name, value]) => value !== opened[name])
    .map(([name, value]) => [name, typeof value === "number" ? +value.toFixed(5) : value]);
  clearTimeout(linkTimer);
  linkTimer = setTimeout(() => history.replaceState(null, "", "#" + new URLSearchParams(told)), 250);
}

function set(values) {
  for (const name in values) if (form.elements[name]) form.elements[name].value = values[name];
  state = Object.fromEntries([...new FormData(form)].map(([name, text]) => [name, isNaN(text) ? text : +text]));
  asked ||= requestAnimationFrame(update);
}

const offset = (canvas, event) => [event.offsetX - canvas.clientWidth / 2, event.offsetY - canvas.clientHeight / 2];

// Zooms so that what is seen at one place, so far from the middle of the canvas, comes to another.
function move(canvas, factor, from = [0, 0], to = from) {
  const before = scaleOf(canvas), zoom = within(1, state.zoom * factor, 60), after = (before * zoom) / state.zoom;
  const middle = (now, axis, size) => (zoom === 1 ? size / 2 : within(0, now + from[axis] / before - to[axis] / after, size));
  set({ zoom, x: middle(state.x, 0, W), y: middle(state.y, 1, H) });
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOMS = { "+": 1.4, "=": 1.4, "-": 0.7, 0: 0 };
for (const { canvas } of views) {
  canvas.onwheel = (event) => { event.preventDefault(); move(canvas, 1.0015 ** -event.deltaY, offset(canvas, event)); };
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, offset(canvas, event));
    travelled = 0;
  };
  canvas.onpointermove = (event) => { // one finger drags; of two, the place between them stays
    const before = fingers.get(event.pointerId), now = offset(canvas, event);
    if (!before) return;
    fingers.set(event.pointerId, now);
    const other = [...fingers.values()].find((place) => place !== now);
    const apart = (one, two) => Math.hypot(one[0] - two[0], one[1] - two[1]);
    const middle = (place) => place.map((at, axis) => (at + (other || place)[axis]) / 2);
    move(canvas, other ? apart(now, other) / apart(before, other) : 1, middle(before), middle(now));
    travelled += other ? 99 : apart(now, before);
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    fingers.delete(event.pointerId);
    const [x, y] = offset(canvas, event).map((place, axis) => Math.floor([state.x, state.y][axis] + place / scaleOf(canvas)));
    if (event.type === "pointerup" && travelled < 5 && x >= 0 && x < W && y >= 0 && y < H) set({ pixel: y * W + x });
  };
  canvas.onkeydown = (event) => {
    const [dx, dy] = ARROWS[event.key] || [0, 0], factor = ZOOMS[event.key] ?? 1;
    if (event.key in ARROWS || event.key in ZOOMS) event.preventDefault();
    if (event.shiftKey && event.key in ARROWS) set({ pixel: within(0, Math.max(0, state.pixel) + dx + W * dy, W * H - 1) });
    else move(canvas, factor, [0, 0], [-60 * dx, -60 * dy]);
  };
}
// A press on the curve takes the nearest point of the first system.
$("curve").onpointerdown = $("curve").onpointermove = (event) => {
  const { system: s } = views[0], box = $("curve").getBoundingClientRect(), { left, right, width } = BOX;
  const share = (((event.clientX - box.left) / box.width) * width - left) / (right - left);
  if (event.buttons) set({ by: "r", r: s.nRejected[nearest(s.ar.map((count, k) => count + s.mr[k]), share * s.n)] / s.pixels });
};
const download = (name, blob) => Object.assign($("link"), { download: name, href: URL.createObjectURL(blob) }).click();
const downloadMap = ({ canvas, system }) => canvas.toBlob((blob) => download(`${system.name}.png`, blob));

function downloadPoints() {
  const columns = (s, k) => ({ system: `"${s.name.replaceAll('"', '""')}"`, threshold: thresholdOf(s, k), rejected_share_of_map: s.nRejected[k] / s.pixels,
    rejected_fraction: refused(s, k), nonrejected_accuracy: accuracy(s, k), classification_quality: (s.an[k] + s.mr[k]) / s.n,
    accurate_kept: s.an[k], misclassified_kept: s.mn[k], accurate_rejected: s.ar[k], misclassified_rejected: s.mr[k] });
  const rows = shown().flatMap(({ system: s }) => Array.from(s.nRejected, (_, k) => Object.values(columns(s, k)).join()));
  download("operating_points.csv", new Blob([[Object.keys(columns(systems[0], 0)).join(), ...rows, ""].join("\n")]));
}

async function start() {
  await unpackAll(page);
  await $("picture")?.decode();
  for (const s of systems) s.n = s.an[0] + s.mn[0] + s.ar[0] + s.mr[0];
  if (page.test) drawCurves();
  set({ dark: +matchMedia("(prefers-color-scheme: dark)").matches });
  opened = state;
  const follow = () => set({ ...opened, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });
  follow();
  addEventListener("hashchange", follow);
  addEventListener("resize", () => set({}));
  addEventListener("input", ({ target }) => set(["r", "cost"].includes(target.name) ? { by: target.name } : {}));
  for (const tick of document.querySelectorAll("[data-share]")) tick.onclick = () => set({ by: "r", r: tick.dataset.share });
  for (const button of document.querySelectorAll("[data-zoom]")) button.onclick = () => move(views[0].canvas, button.dataset.zoom);
  $("png").onclick = () => shown().forEach(downloadMap);
  $("csv").onclick = downloadPoints;
}

start().catch((error) => fill(document, { trouble: `This page cannot be shown (${error.message}). It needs a browser of 2023 or later.` }));
