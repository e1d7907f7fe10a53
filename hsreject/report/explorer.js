"use strict";
// The controls of the page, one form, are all its state: `update` reads and shows them, `set` changes
// them, and the address holds those that differ from how the page opened.
const $ = (id) => document.getElementById(id);
const page = JSON.parse($("payload").textContent);
const { width: W, height: H, systems } = page;
const form = $("controls"), fingers = new Map();
let state = {}, opened = {}, asked = 0, linkTimer = 0, travelled = 0;

const percent = (share, digits = 1) => (Number.isFinite(share) ? (100 * share).toFixed(digits) + " %" : "–");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const within = (low, value, high) => Math.max(low, Math.min(high, value));

// Writes texts into the nodes of these names, as text: a class name cannot bring markup.
function fill(node, texts) {
  for (const [name, text] of Object.entries(texts)) {
    for (const place of node.querySelectorAll(`[data-name="${name}"]`)) {
      place.textContent = typeof text === "number" ? percent(text) : text;
      place.dataset.value = text;
    }
  }
}

// ---- What the page carries: base64 of deflated arrays

async function unpack(text, Type = Uint8Array) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Type(await new Response(stream).arrayBuffer());
}

async function unpackSystem(s) {
  const table = await unpack(s.table, Int32Array); // columns of steps from one point to the next
  for (let i = 0; i < table.length; i++) if (i % s.points) table[i] += table[i - 1];
  const column = (i) => table.subarray(i * s.points, (i + 1) * s.points);
  [s.gone, s.an, s.mn, s.ar, s.mr] = [0, 1, 2, 3, 4].map(column);
  s.refused = s.ar.map((count, k) => count + s.mr[k]);
  s.n = s.an[0] + s.mn[0] + s.refused[0];
  const ranks = s.cells > 256 ? Uint16Array : Uint8Array;
  const types = { labels: Uint8Array, ranks, sampleLabels: Uint8Array, sampleRanks: Uint16Array };
  for (const name in types) {
    const all = await unpack(s[name], types[name]), size = all.length / s.planes;
    for (let i = size; i < all.length; i++) all[i] ^= all[i - size]; // a plane is stored as what changes
    s[name] = Array.from({ length: s.planes }, (_, plane) => all.subarray(plane * size, (plane + 1) * size));
  }
  s.truth = await unpack(s.truth);
  if (s.thresholds) s.thresholds = await unpack(s.thresholds, s.double ? Float64Array : Float32Array);
}

// ---- Operating points. With a threshold, point k rejects the ranks below k; a system without one has
// a map for each point, where rank 0 is rejected. an, mn, ar, mr count test pixels: accurate or
// misclassified, not rejected or rejected; gone counts rejected pixels of the map.

const planeOf = (s, k) => (s.thresholds ? 0 : k);
const cutOf = (s, k) => (s.thresholds ? Math.round((k * s.cells) / (s.points - 1)) : 1);
const accuracy = (s, k) => s.an[k] / (s.an[k] + s.mn[k]);
const costAt = (s, k, cost) => (s.mn[k] + cost * s.refused[k]) / s.n;

// The point whose count in an ascending column is nearest; halfway, the one that rejects less.
function nearest(column, wanted) {
  const found = column.findIndex((count) => count >= wanted), above = found < 0 ? column.length - 1 : found;
  return above > 0 && wanted - column[above - 1] <= column[above] - wanted ? above - 1 : above;
}

// The winners are listed with the lowest cost that they win at, the one that rejects least first.
const cheapest = (s, cost) => (s.n ? s.winners.find(([, lowest]) => cost >= lowest - 1e-12)[0] : 0);
const pointOf = (s) => (state.by === "cost" ? cheapest(s, state.cost) : nearest(s.gone, state.r * s.pixels));

// The last point that keeps a pixel.
const lastKept = (s, i) => (s.thresholds ? Math.floor((s.ranks[0][i] * (s.points - 1)) / s.cells)
  : Math.max(0, s.ranks.reduce((count, plane) => count + plane[i], 0) - 1));

function wilson(right, n) {
  const z = 1.959963984540054, share = right / n, middle = share + (z * z) / (2 * n);
  const half = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
  return [(middle - half) / (1 + (z * z) / n), (middle + half) / (1 + (z * z) / n)];
}

// ---- The map

const LAYERS = { // what a pixel shows: 0 is nothing, others are places in page.colors
  labels: (s, labels) => labels,
  outcome: (s, labels) => labels.map((label, i) => label && page.test[i] && (label === page.test[i] ? 1 : 2)),
  confidence: (s, labels) => labels.map((label, i) => label && 1 + (254 * s.gone[lastKept(s, i)]) / s.pixels),
  reference: () => page.reference,
};

const sheet = (width, height) => new OffscreenCanvas(width, height).getContext("2d");
const veil = sheet(1, 1);
const views = [...document.querySelectorAll("#views figure")].map((figure) => (
  { figure, canvas: figure.querySelector("canvas"), image: sheet(W, H), hatched: sheet(W, H) }));
const shown = () => views.filter((view) => !view.figure.hidden);

// The colors of a layer as 32-bit words, mixed with this share of the page's background.
function colorsOf(layer, share) {
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)), paper = rgb(style("--paper"));
  const alone = state.only && (layer === "labels" || layer === "reference");
  return Uint32Array.from([0, ...page.colors[layer].map((hex, i) => {
    const faded = alone && i + 1 !== state.only ? 0.9 : share;
    const [r, g, b] = rgb(hex).map((c, channel) => Math.round(c + faded * (paper[channel] - c)));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  })]);
}

function paint(view) {
  const { system: s, k } = view, plane = planeOf(s, k), labels = s.labels[plane], ranks = s.ranks[plane];
  const layer = [s.name, plane, state.layer].join(), rejects = state.layer !== "reference", cut = cutOf(s, k);
  if (view.layer !== layer) Object.assign(view, { layer, keys: LAYERS[state.layer](s, labels) });
  const plain = colorsOf(state.layer, 0), faded = colorsOf(state.layer, 0.76), { keys } = view;
  const image = new ImageData(W, H), hatched = new ImageData(W, H);
  const imageWords = new Uint32Array(image.data.buffer), hatchedWords = new Uint32Array(hatched.data.buffer);
  const all = new Uint32Array(256), kept = new Uint32Array(256);
  for (let i = 0; i < labels.length; i++) {
    const isKept = ranks[i] >= cut, key = keys[i];
    all[labels[i]]++;
    if (isKept) kept[labels[i]]++;
    imageWords[i] = isKept || !rejects ? plain[key] : faded[key];
    hatchedWords[i] = isKept || !rejects || !key ? 0 : 0xff000000;
  }
  view.image.putImageData(image, 0, 0);
  view.hatched.putImageData(hatched, 0, 0);
  Object.assign(view, { all, kept });
}

function hatching(ratio) {
  const size = Math.round(6 * ratio), pen = sheet(size, size);
  Object.assign(pen, { strokeStyle: style("--hatch"), lineWidth: ratio });
  for (const x of [-size, 0, size]) pen.moveTo(x - 1, size + 1), pen.lineTo(x + size + 1, -1);
  pen.stroke();
  return veil.createPattern(pen.canvas, "repeat");
}

const scaleOf = (canvas) => Math.min(canvas.clientWidth / W, canvas.clientHeight / H) * state.zoom;

// Picture, layer and hatching over each other; the hatching has the scale of the screen.
function draw({ canvas, image, hatched }) {
  const ratio = devicePixelRatio || 1, scale = scaleOf(canvas) * ratio, context = canvas.getContext("2d");
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
  if (page.picture) context.drawImage($("picture"), 0, 0, W, H);
  context.globalAlpha = state.opacity;
  context.drawImage(image.canvas, 0, 0);
  for (const [strokeStyle, line] of state.pixel < 0 ? [] : [["#000", 5], ["#fff", 2]]) {
    Object.assign(context, { strokeStyle, globalAlpha: 1, lineWidth: (line * ratio) / scale });
    context.strokeRect(state.pixel % W, Math.floor(state.pixel / W), 1, 1);
  }
  context.resetTransform();
  context.globalAlpha = state.opacity;
  context.drawImage(veil.canvas, 0, 0);
}

// ---- Numbers

function showNumbers({ system: s, k }, place) {
  const [low, high] = wilson(s.an[k], s.an[k] + s.mn[k]), errors = s.mn[k] + s.mr[k], { left, right, top, bottom, floor } = page.box;
  const x = left + (s.refused[k] / s.n) * (right - left), y = (a) => bottom - ((a - floor) / (1 - floor)) * (bottom - top);
  fill($(`numbers${place}`), { name: s.name, kept: 1 - s.gone[k] / s.pixels, accuracy: accuracy(s, k), low, high,
    before: (s.an[k] + s.ar[k]) / s.n, refused: s.refused[k] / s.n, errors: errors.toLocaleString("en"), caught: s.mr[k] / errors,
    threshold: s.thresholds ? String(s.thresholds[k] ?? Infinity) : "none" });
  $(`now${place}`).innerHTML = s.an[k] + s.mn[k] === 0 ? "" : // nothing but numbers
    `<line x1="${x}" x2="${x}" y1="${y(low)}" y2="${y(high)}"/><circle cx="${x}" cy="${y(accuracy(s, k))}" r="6.5"/>`;
}

function showControls({ system: s, k }) {
  const share = s.gone[k] / s.pixels, best = cheapest(s, state.cost);
  if (state.by === "cost") form.elements.r.value = share;
  fill(document, { share, below: s.thresholds?.[k]?.toPrecision(4) ?? "–", cost: state.cost.toFixed(2),
    best: s.gone[best] / s.pixels, least: costAt(s, best, state.cost).toFixed(3), here: costAt(s, k, state.cost).toFixed(3) });
  $("certified").hidden = s.certified === null;
  $("certified").style.left = `${100 * (s.gone[s.certified] / s.pixels)}%`;
  $("certified").classList.toggle("here", k === s.certified);
}

function showClasses({ system: s, k, all, kept }, place) {
  const labels = s.sampleLabels[planeOf(s, k)], ranks = s.sampleRanks[planeOf(s, k)], cut = s.thresholds ? k : 1;
  const sure = new Uint32Array(256), right = new Uint32Array(256);
  labels.forEach((label, i) => { if (ranks[i] >= cut) sure[label]++, (right[label] += label === s.truth[i]); });
  for (const row of $("classes").tBodies[0].rows) {
    const code = +row.dataset.code, share = kept[code] / all[code];
    fill(row, { [`all${place}`]: all[code] / s.pixels, [`kept${place}`]: share, [`right${place}`]: right[code] / sure[code] });
    row.style.setProperty("--kept", share || 0);
    row.setAttribute("aria-selected", code === state.only);
  }
}

function showPixel() {
  const i = state.pixel, row = Math.floor(i / W), column = i % W, [x, dx, y, dy] = page.place || [];
  $("pixel").classList.toggle("empty", i < 0);
  if (i < 0) return;
  const named = (code) => (code ? page.classes[code - 1] : "none"), known = page.reference?.[i];
  const place = page.place ? `, x ${+(x + column * dx).toFixed(3)}, y ${+(y + row * dy).toFixed(3)}` : "";
  fill($("pixel"), { where: `row ${row * page.step}, column ${column * page.step}${place}`,
    reference: named(known) + (known && !page.test[i] ? ", not a test pixel" : "") });
  shown().forEach(({ system: s, k }, n) => {
    const plane = planeOf(s, k), label = s.labels[plane][i], last = lastKept(s, i);
    const sure = s.thresholds ? `${s.cells < s.points - 1 ? "about " : ""}${+s.thresholds[last].toPrecision(4)}, ` : "";
    const fate = s.ranks[plane][i] < cutOf(s, k) ? "rejected" : "kept";
    fill($("pixel"), { [`label${n}`]: label ? `${named(label)}, ${fate}` : "no data",
      [`sure${n}`]: label ? `${sure}kept until ${percent(s.gone[last] / s.pixels)} of the map is rejected` : "–" });
  });
  if (page.spectra) $("spectrum").setAttribute("d", spectrumPath(i));
}

function spectrumPath(i) {
  const { places, mean, basis, scores, components } = page.spectra, values = Array.from(mean), bands = values.length;
  for (let b = 0; b < bands; b++) for (let c = 0; c < components; c++) values[b] += basis[c * bands + b] * scores[c * W * H + i];
  const low = Math.min(0, ...values), range = Math.max(...values) - low || 1;
  return places.map(([x, joined], b) => `${joined ? "L" : "M"}${x} ${84 - (78 * (values[b] - low)) / range}`).join("");
}

// ---- Changes

function update() {
  asked = 0;
  const pair = state.beside >= 0 && state.beside !== state.system, places = pair ? [state.system, state.beside] : [state.system];
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  document.body.className = [pair ? "pair" : "", state.zoom > 1 ? "zoomed" : "", state.layer].join(" ");
  views[1].figure.hidden = !pair;
  places.forEach((system, place) => {
    const view = Object.assign(views[place], { system: systems[system], k: pointOf(systems[system]) });
    const picture = [system, view.k, state.layer, state.only, state.dark].join();
    if (view.picture !== picture) paint(view);
    view.picture = picture;
    fill(view.figure, { name: view.system.name });
    draw(view), showNumbers(view, place), showClasses(view, place);
  });
  for (const line of document.querySelectorAll("#curve [data-system]")) line.dataset.place = places.indexOf(+line.dataset.system);
  showControls(views[0]), showPixel();
  clearTimeout(linkTimer);
  linkTimer = setTimeout(() => history.replaceState(null, "", "#" + new URLSearchParams(told())), 250);
}

const told = () => Object.entries(state).filter(([name, value]) => value !== opened[name])
  .map(([name, value]) => [name, typeof value === "number" ? +value.toFixed(5) : value]);

function set(values) {
  for (const name in values) if (form.elements[name]) form.elements[name].value = values[name];
  const number = (text) => (text === "" || isNaN(text) ? text : +text);
  state = Object.fromEntries([...new FormData(form)].map(([name, text]) => [name, number(text)]));
  asked ||= requestAnimationFrame(update);
}

// Zooms about a place of the screen and shifts by some of its pixels.
function move(canvas, factor, clientX, clientY, dx = 0, dy = 0) {
  const box = canvas.getBoundingClientRect(), before = scaleOf(canvas), zoom = within(1, state.zoom * factor, 60);
  const after = (before * zoom) / state.zoom, px = clientX - box.left - box.width / 2, py = clientY - box.top - box.height / 2;
  const center = (now, p, shift, size) => (zoom === 1 ? size / 2 : within(0, now + p / before - (p + shift) / after, size));
  set({ zoom, x: center(state.x, px, dx, W), y: center(state.y, py, dy, H) });
}

for (const { canvas } of views) {
  canvas.onwheel = (event) => { event.preventDefault(); move(canvas, 1.0015 ** -event.deltaY, event.clientX, event.clientY); };
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, event); travelled = 0; };
  canvas.onpointermove = (event) => {
    const before = fingers.get(event.pointerId), other = [...fingers.values()].find((one) => one.pointerId !== event.pointerId);
    if (!before) return;
    const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const [dx, dy] = other ? [0, 0] : [event.clientX - before.clientX, event.clientY - before.clientY];
    travelled += other ? 99 : Math.hypot(dx, dy);
    fingers.set(event.pointerId, event);
    move(canvas, other ? apart(event) / apart(before) : 1, event.clientX, event.clientY, dx, dy);
  };
  canvas.onpointercancel = (event) => fingers.delete(event.pointerId);
  canvas.onpointerup = (event) => {
    const box = canvas.getBoundingClientRect(), scale = scaleOf(canvas);
    const column = Math.floor(state.x + (event.clientX - box.left - box.width / 2) / scale);
    const row = Math.floor(state.y + (event.clientY - box.top - box.height / 2) / scale);
    if (travelled < 5 && column === within(0, column, W - 1) && row === within(0, row, H - 1)) set({ pixel: row * W + column });
    fingers.delete(event.pointerId);
  };
  canvas.onkeydown = (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [0, 0];
    const factor = { "+": 1.4, "=": 1.4, "-": 1 / 1.4, 0: 0 }[event.key] ?? 1, box = canvas.getBoundingClientRect();
    if (!dx && !dy && factor === 1) return;
    event.preventDefault();
    if (event.shiftKey && factor === 1) return set({ pixel: within(0, Math.max(0, state.pixel) + dx + W * dy, W * H - 1) });
    move(canvas, factor, box.left + box.width / 2, box.top + box.height / 2, -60 * dx, -60 * dy);
  };
}

function download(name, blob) {
  Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(blob) }).click();
}

async function downloadPicture() {
  const canvases = shown().map((view) => view.canvas), pen = sheet(canvases.length * canvases[0].width, canvases[0].height);
  Object.assign(pen, { fillStyle: style("--ground") }).fillRect(0, 0, pen.canvas.width, pen.canvas.height);
  canvases.forEach((canvas, place) => pen.drawImage(canvas, place * canvas.width, 0));
  download("map.png", await pen.canvas.convertToBlob());
}

function downloadPoints() {
  const head = "system,threshold,rejected_share_of_map,rejected_fraction,nonrejected_accuracy,classification_quality," +
    "accurate_kept,misclassified_kept,accurate_rejected,misclassified_rejected";
  const rows = shown().flatMap(({ system: s }) => Array.from(s.gone, (gone, k) => [JSON.stringify(s.name),
    s.thresholds ? s.thresholds[k] ?? Infinity : NaN, gone / s.pixels, s.refused[k] / s.n, accuracy(s, k),
    (s.an[k] + s.mr[k]) / s.n, s.an[k], s.mn[k], s.ar[k], s.mr[k]].join()));
  download("operating_points.csv", new Blob([[head, ...rows].join("\n") + "\n"], { type: "text/csv" }));
}

// A click on the curve takes the nearest point of the first system.
function takeFromCurve(event) {
  const { system: s } = views[0], box = $("curve").getBoundingClientRect(), { left, right, width } = page.box;
  const share = (((event.clientX - box.left) / box.width) * width - left) / (right - left);
  if (event.buttons) set({ by: "r", r: s.gone[nearest(s.refused, share * s.n)] / s.pixels });
}

const ACTIONS = {
  png: downloadPicture, csv: downloadPoints, theme: () => set({ dark: 1 - state.dark }),
  closer: () => views[0].canvas.onkeydown(new KeyboardEvent("keydown", { key: "+" })),
  farther: () => views[0].canvas.onkeydown(new KeyboardEvent("keydown", { key: "-" })),
  fit: () => set({ zoom: 1, x: W / 2, y: H / 2 }),
  certified: () => set({ by: "r", r: views[0].system.gone[views[0].system.certified] / views[0].system.pixels }),
};

async function start() {
  for (const name of ["reference", "test"]) if (page[name]) page[name] = await unpack(page[name]);
  await Promise.all(systems.map(unpackSystem));
  for (const name in page.spectra?.packed) page.spectra[name] = await unpack(page.spectra.packed[name], name === "scores" ? Uint8Array : Float32Array);
  await $("picture")?.decode();
  set({ dark: +matchMedia("(prefers-color-scheme: dark)").matches });
  opened = { ...state };
  const follow = () => set({ ...opened, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });
  follow();
  addEventListener("hashchange", follow);
  addEventListener("resize", () => set({}));
  form.oninput = null;
  document.addEventListener("input", ({ target }) => set(["r", "cost"].includes(target.name) ? { by: target.name } : {}));
  document.addEventListener("click", ({ target }) => ACTIONS[target.id]?.());
  $("curve").onpointerdown = $("curve").onpointermove = takeFromCurve;
  $("classes").onclick = ({ target }) => { const code = +target.closest("[data-code]")?.dataset.code; if (code) set({ only: code === state.only ? 0 : code }); };
  document.body.dataset.ready = "yes";
}

start().catch((error) => {
  $("trouble").hidden = false;
  $("trouble").textContent = `This page cannot be shown (${error.message}). It needs a browser of 2023 or later.`;
});
