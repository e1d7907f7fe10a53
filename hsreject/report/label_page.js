"use strict";
// The answers, one text per point, are all the state: `show` draws the point at `at`, `answer` changes it, "" is open.
const $ = (id) => document.getElementById(id);
const page = JSON.parse($("payload").textContent);
const column = (name) => page.columns.indexOf(name);
const ID = column("id"), REFERENCE = column("reference");
const said = page.rows.map((row) => String(row[REFERENCE])), answers = [...said];
const spectra = Uint8Array.from(atob(page.spectra), (letter) => letter.charCodeAt(0));
let at = -1, saved = said;

// Kept in the browser while one works, for each point, known by its number and pixel: the answer, and what the file
// said when it was given. Where the file says something else by now, the file counts. Private windows keep nothing.
const KEY = ["id", "row", "column"].map(column);
const key = (row) => KEY.map((k) => row[k]).join(" ");
function kept() {
  try { return JSON.parse(localStorage.getItem(page.store)) ?? {}; }
  catch { return {}; }
}
function keep(changes) {
  const all = kept();
  for (const [i, text] of changes) {
    answers[i] = text;
    all[key(page.rows[i])] = [text, said[i]];
  }
  try { localStorage.setItem(page.store, JSON.stringify(all)); }
  catch { $("trouble").textContent = "This browser keeps nothing: save the CSV file before you close the page."; }
}
const before = kept();
page.rows.forEach((row, i) => {
  const [text, then] = before[key(row)] ?? [];
  if (then === said[i]) answers[i] = text;
});

function draw(canvas, size) {
  const context = canvas.getContext("2d"), chip = page.chip, scale = canvas.width / size;
  const x = chip * (at % page.across), y = chip * Math.floor(at / page.across), first = chip / 2 - size / 2;
  context.imageSmoothingEnabled = false;
  context.drawImage($("picture"), x + first, y + first, size, size, 0, 0, canvas.width, canvas.height);
  const corner = (size / 2) * scale;
  for (const [color, grow] of [["#000", 1.5], ["#fff", 0]]) {
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.strokeRect(corner - grow, corner - grow, scale + 2 * grow, scale + 2 * grow);
  }
}

const SVG = "http://www.w3.org/2000/svg";
function line(values, color, width) {
  const path = document.createElementNS(SVG, "path"), n = Math.max(values.length - 1, 1);
  path.setAttribute("d", Array.from(values, (v, i) => `${i ? "L" : "M"}${(8 + (624 * i) / n).toFixed(1)} ${(150 - 138 * v).toFixed(1)}`).join(""));
  path.setAttribute("fill", "none");
  path.setAttribute("stroke", color);
  path.setAttribute("stroke-width", width);
  $("spectrum").append(path);
}
function spectrum() {
  $("spectrum").replaceChildren();
  for (const one of page.medians) line(one.line, one.color, 1.2);
  line(Array.from(spectra.subarray(at * page.bands, (at + 1) * page.bands), (v) => v / 255), "currentColor", 2.4);
  const ends = page.ends ? `${page.ends[0].toFixed(0)} to ${page.ends[1].toFixed(0)} nm` : `${page.bands} bands`;
  $("legend").textContent = `Spectrum, ${ends}${page.medians.length ? ", beside class medians: " + page.medians.map((one) => one.name).join(", ") : ""}`;
}

function show() {
  const row = page.rows[at], text = answers[at];
  draw($("wide"), 64);
  draw($("near"), 16);
  spectrum();
  $("number").textContent = row[ID];
  $("answer").textContent = text || "not labelled yet";
  const place = ["longitude", "latitude", "row", "column", "map_label"].filter((name) => column(name) >= 0);
  $("where").textContent = place.map((name) => `${name.replace("_", " ")} ${name.endsWith("tude") ? row[column(name)].toFixed(6) : row[column(name)]}`).join(", ");
  for (const button of document.querySelectorAll("[data-answer]")) button.setAttribute("aria-pressed", button.dataset.answer === text);
  const done = answers.filter(Boolean).length;
  $("done").textContent = done;
  $("bar").value = done;
  $("clear").disabled = !text;
  $("finished").hidden = done < answers.length || answers.every((one, i) => one === saved[i]);
  document.querySelector(".picture").scrollIntoView({ block: "nearest" }); // off the screen of a phone with many classes
}

const move = (step) => { at = Math.max(0, Math.min(answers.length - 1, at + step)); show(); };
function nextOpen() {
  const after = answers.findIndex((text, i) => !text && i > at), first = answers.findIndex((text) => !text);
  at = after >= 0 ? after : first >= 0 ? first : Math.max(at, 0);
  show();
}
function answer(text, step = 1) {
  keep([[at, text]]);
  move(step);
}

// ---- CSV, as hsreject writes it: text that a spreadsheet would compute begins with an apostrophe.
const cell = (value) => {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? "'" + value : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
function csv() {
  const rows = page.rows.map((row, i) => row.map((value, k) => cell(k === REFERENCE ? answers[i] : value)).join(","));
  return [page.columns.join(","), ...rows].join("\r\n") + "\r\n";
}
function parse(text) {
  const rows = [[]];
  const head = text.split("\n", 1)[0], mark = [",", ";", "\t"].sort((a, b) => head.split(b).length - head.split(a).length)[0];
  for (let i = 0, quoted = false, part = ""; i <= text.length; i++) {
    const c = text[i];
    if (quoted && c === '"' && text[i + 1] === '"') { part += '"'; i++; }
    else if (c === '"') quoted = !quoted;
    else if (!quoted && (c === mark || c === "\n" || c === undefined)) {
      rows.at(-1).push(part.replace(/\r$/, "").replace(/^'(?=[=+\-@])/, ""));
      part = "";
      if (c === "\n") rows.push([]);
    } else part += c;
  }
  return rows.filter((row) => row.length > 1);
}
function goOn(text) {
  const [head, ...rows] = parse(text.replace(/^\ufeff/, ""));
  const names = (head ?? []).map((name) => name.trim().toLowerCase());
  const [id, reference, design] = ["id", "reference", "design"].map((name) => names.indexOf(name));
  const drawn = page.rows[0][column("design")];
  const foreign = design >= 0 && drawn !== "unknown" && rows.some((row) => row[id] && !row[design]?.includes(drawn));
  $("trouble").textContent = id < 0 || reference < 0 ? "This file has no columns 'id' and 'reference'."
    : foreign ? "This file holds the points of another sample: make a page for it with 'hsreject label'." : "";
  if ($("trouble").textContent) return;
  const places = new Map(page.rows.map((row, i) => [String(row[ID]), i]));
  keep(rows.filter((row) => places.has(row[id]) && row[reference]).map((row) => [places.get(row[id]), row[reference]]));
  nextOpen();
}

function save() {
  $("link").href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  $("link").download = page.file;
  $("link").click();
  saved = [...answers];
  show();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-answer]");
  if (button) answer(button.dataset.answer);
  if (event.target.closest(".save")) save();
});
$("other").addEventListener("submit", (event) => {
  event.preventDefault();
  answer($("name").value.trim() || page.none);
  $("name").value = "";
  $("name").blur();
});
$("back").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
$("open").addEventListener("click", nextOpen);
$("clear").addEventListener("click", () => answer("", 0));
$("load").addEventListener("change", async (event) => { if (event.target.files[0]) goOn(await event.target.files[0].text()); });
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const one = page.classes.find((item) => item.key && item.key === event.key);
  if (one) answer(one.name);
  else if (event.key === "0") answer(page.untold);
  else if (event.key === "n") { event.preventDefault(); $("name").focus(); }
  else if (event.key === "Backspace" || event.key === "Delete") answer("", 0);
  else if (event.key === "ArrowLeft") move(-1);
  else if (event.key === "ArrowRight") move(1);
});
$("picture").decode().then(() => { nextOpen(); document.body.className = "ready"; });
