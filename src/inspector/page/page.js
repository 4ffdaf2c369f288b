// The page of the inspector: shows what the paths beside it answer, every two seconds, or as often
// as the parameter `interval` of the fragment says, in seconds.
"use strict";

const history_length = 60;
const page_rows = 100;

const element = (id) => document.getElementById(id);

/** Makes an element. Texts are never parsed as HTML. */
function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// The state of the page is in the fragment of its address, so that a view can be linked to.
const first_state = {tab: "loops", q: "", sort: "", order: "", offset: "0"};
const state = {theme: "", interval: "", ...first_state};
const interval_seconds = () => Math.max(Number(state.interval) || 2, 0.1);

function read_state() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, first_state);
  for (const key of Object.keys(state)) {
    if (parameters.has(key)) state[key] = parameters.get(key);
  }
}

function change(changes) {
  Object.assign(state, changes);
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== "" && !(key === "offset" && value === "0")) parameters.set(key, value);
  }
  history.replaceState(null, "", "#" + parameters);
  refresh();
}

// Numbers.

function duration(seconds) {
  if (!(seconds > 0)) return "0";
  if (seconds < 1e-3) return (seconds * 1e6).toPrecision(2) * 1 + " µs";
  if (seconds < 1) return Number((seconds * 1e3).toPrecision(3)) + " ms";
  if (seconds < 120) return Number(seconds.toPrecision(3)) + " s";
  if (seconds < 7200) return Math.round(seconds / 60) + " min";
  return Math.round(seconds / 3600) + " h";
}

function count(number) {
  if (number < 10000) return String(Math.round(number * 10) / 10).replace(/\.0$/, "");
  if (number < 1e6) return Number((number / 1e3).toPrecision(3)) + " k";
  if (number < 1e9) return Number((number / 1e6).toPrecision(3)) + " M";
  return Number((number / 1e9).toPrecision(3)) + " G";
}

function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  for (; number >= 1024 && unit < 3; ++unit) number /= 1024;
  return number === 0 ? "0" : Number(number.toPrecision(3)) + " " + units[unit];
}

const percent = (share) => Math.round(Math.min(Math.max(share, 0), 1) * 100) + " %";

// Requests.

async function get(path) {
  const response = await fetch(path, {cache: "no-store", credentials: "same-origin"});
  return {status: response.status, text: await response.text()};
}

async function get_json(path) {
  const answer = await get(path);
  if (answer.status !== 200) throw new Error(path + " answers " + answer.status);
  return JSON.parse(answer.text);
}

// Tables.

/**
 * Columns have a key and a title, and may have `number` (right-aligned), `wide` (not on narrow
 * screens), `show` (the text or element of a row) and `mark` (a class of the cell).
 */
function table(columns, rows, sort_by) {
  const head = make("tr");
  for (const column of columns) {
    const sorts = state.sort === column.key;
    const title = make("button", {type: "button", textContent: column.title});
    title.addEventListener("click", () => sort_by(column));
    head.append(make("th", {
      className: (column.number ? "number " : "") + (column.wide ? "wide" : ""),
      scope: "col",
      "aria-sort": sorts ? (state.order === "desc" ? "descending" : "ascending") : "none",
    }, title));
  }
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    for (const column of columns) {
      const shown = column.show ? column.show(row) : String(row[column.key]);
      const kind = [column.number ? "number" : "text", column.wide ? "wide" : "",
                    column.mark ? column.mark(row) : ""].join(" ");
      const cell = make("td", {className: kind}, shown);
      if (typeof shown === "string" && shown.length > 40) cell.title = shown;
      line.append(cell);
    }
    body.append(line);
  }
  return make("div", {className: "frame"}, make("table", {}, make("thead", {}, head), body));
}

function next_order(column) {
  const is_sorted = state.sort === column.key;
  const first = column.number ? "desc" : "";
  return {sort: column.key, order: is_sorted && state.order === first ? (first ? "" : "desc") : first,
          offset: "0"};
}

/** Searches and sorts rows in the page. */
function local_table(columns, rows, otherwise) {
  const wanted = state.q.toLowerCase();
  let shown = rows.filter((row) => wanted === "" || Object.values(row).some(
      (value) => String(value).toLowerCase().includes(wanted)));
  const sorted = columns.find((column) => column.key === state.sort);
  if (sorted) {
    const sign = state.order === "desc" ? -1 : 1;
    shown = shown.slice().sort((a, b) => {
      const [x, y] = [a[sorted.key], b[sorted.key]];
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }
  if (rows.length === 0) return make("div", {className: "frame empty", textContent: otherwise});
  return table(columns, shown.slice(0, 500), (column) => change(next_order(column)));
}

function search_tools(note) {
  const box = make("input", {type: "search", id: "search", placeholder: "Search", value: state.q,
                             "aria-label": "Search"});
  box.addEventListener("input", () => change({q: box.value, offset: "0"}));
  return make("div", {className: "tools"}, box, make("span", {className: "quiet", id: "note",
                                                              textContent: note}));
}

// Loops.

const histories = new Map();  // Of each loop: the readings of the last two minutes.

function remember(loops, now) {
  for (const loop of loops) {
    const readings = histories.get(loop.name) || [];
    readings.push({time: now, loop: loop});
    if (readings.length > history_length + 1) readings.shift();
    histories.set(loop.name, readings);
  }
}

/** The share of the time that callbacks took between two readings. */
function busy_between(before, after) {
  const time = (after.time - before.time) / 1000;
  const spent = after.loop.callback_seconds + after.loop.running_seconds -
      before.loop.callback_seconds - before.loop.running_seconds;
  return time > 0 ? Math.min(Math.max(spent / time, 0), 1) : 0;
}

function rate_of(readings, key) {
  if (readings.length < 2) return 0;
  const [before, after] = readings.slice(-2);
  return Math.max(after.loop[key] - before.loop[key], 0) * 1000 / (after.time - before.time);
}

function chart(values) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "chart");
  svg.setAttribute("viewBox", "0 0 " + (history_length - 1) + " 100");
  svg.setAttribute("preserveAspectRatio", "none");
  const first = history_length - values.length;
  const points = values.map((value, i) => (first + i) + "," + (98 - 96 * value)).join(" ");
  const fill = document.createElementNS(space, "polygon");
  fill.setAttribute("class", "fill");
  fill.setAttribute("points", first + ",100 " + points + " " + (history_length - 1) + ",100");
  const stroke = document.createElementNS(space, "polyline");
  stroke.setAttribute("class", "stroke");
  stroke.setAttribute("points", points);
  if (values.length > 0) svg.append(fill, stroke);
  return svg;
}

function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, number) => sum + number, 0);
  let seen = 0;
  for (let i = 0; i < counts.length; ++i) {
    if (counts[i] > 0 && (seen + counts[i]) >= share * total) {
      const low = i > 0 ? bounds[i - 1] : 0;
      const high = i < bounds.length ? bounds[i] : low;
      return low + (high - low) * Math.max(share * total - seen, 0) / counts[i];
    }
    seen += counts[i];
  }
  return 0;
}

function lag_bars(bounds, lags) {
  const most = Math.max(1, ...lags);
  const bars = make("div", {className: "lags"});
  lags.forEach((number, i) => {
    const bar = make("i", {title: (i < bounds.length ? "up to " + duration(bounds[i]) : "longer") +
                                  ": " + count(number) + " iterations"});
    // Logarithmic: one slow iteration of a million must be visible.
    bar.style.height = (number > 0 ? 6 + 94 * Math.log1p(number) / Math.log1p(most) : 0) + "%";
    if (i < bounds.length ? bounds[i] > 0.01 : true) bar.className = "late";
    bars.append(bar);
  });
  return bars;
}

function loop_card(loop, bounds) {
  const readings = histories.get(loop.name) || [];
  const busy = readings.slice(1).map((reading, i) => busy_between(readings[i], reading));
  const is_blocked = loop.running_seconds > 0.5;
  const status = loop.iterations === undefined ? "does not answer yet"
      : is_blocked ? "blocked for " + duration(loop.running_seconds) + " by " + loop.running
      : loop.running ? "runs " + loop.running : "waits for events";
  if (loop.iterations === undefined) {
    return make("section", {className: "card"}, make("h2", {}, loop.name),
                make("p", {className: "now bad", textContent: status}));
  }
  const gauge = (key) => loop[key] === undefined ? undefined : count(loop[key]);
  const rate = (key) => loop[key] === undefined ? undefined : count(rate_of(readings, key));
  const figures = [
    ["Iterations/s", rate("iterations")],
    ["Callbacks/s", count(rate_of(readings, "callbacks") +
                          (loop.posted === undefined ? 0 : rate_of(readings, "posted")))],
    ["System calls/s", rate("system_calls")],
    ["Timers", gauge("timers")],
    ["Pending", gauge("pending")],
    ["Posted, waiting", gauge("posted_waiting")],
    ["Lag, 99 %", duration(quantile(bounds, loop.lags, 0.99))],
    ["Lag, longest", duration(loop.lag_max_seconds)],
    ["Stalls", gauge("stalls")],
  ].filter(([, value]) => value !== undefined);  // Loops of drop-ins know fewer.
  const list = make("dl", {className: "figures"});
  for (const [name, value] of figures)
    list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const share = busy.length > 0 ? busy[busy.length - 1] : 0;
  return make("section", {className: "card"},
      make("h2", {}, make("span", {}, loop.name),
           make("span", {className: "pill " + (share > 0.9 ? "bad" : share > 0.6 ? "warn" : "good"),
                         textContent: percent(share) + " busy"})),
      make("p", {className: "now" + (is_blocked ? " bad" : " quiet"), textContent: status}),
      make("div", {className: "chart-name"},
           make("span", {}, "Busy, last " + duration(history_length * interval_seconds())),
           make("span", {}, "100 %")),
      chart(busy),
      make("div", {className: "chart-name"},
           make("span", {}, "Iterations by lag, " + duration(bounds[0]) + " to " +
                duration(bounds[bounds.length - 1]))),
      lag_bars(bounds, loop.lags), list);
}

async function show_loops() {
  const answer = await get_json("loops");
  remember(answer.loops, performance.now());
  element("title").textContent = answer.title;
  document.title = answer.title + " – inspector";
  const shown = answer.views.split(" ");
  for (const tab of element("tabs").children)
    tab.hidden = !shown.includes(tab.getAttribute("href").slice("#tab=".length));
  if (state.tab !== "loops") return null;
  const cards = make("div", {className: "cards"});
  for (const loop of answer.loops) cards.append(loop_card(loop, answer.lag_bounds));
  return [cards];
}

// Callbacks.

async function show_callbacks() {
  const rows = (await get_json("callbacks")).callbacks;
  const total = rows.reduce((sum, row) => sum + row.total_seconds, 0) || 1;
  for (const row of rows) row.mean_seconds = row.total_seconds / row.calls;
  const columns = [
    {key: "place", title: "Source line", show: (row) => make("code", {}, row.place || "unknown")},
    {key: "calls", title: "Calls", number: true, show: (row) => count(row.calls)},
    {key: "total_seconds", title: "Total", number: true, show: (row) => {
      const meter = make("span", {className: "meter"});
      meter.style.width = Math.round(60 * row.total_seconds / total) + "px";
      return make("span", {}, meter, duration(row.total_seconds));
    }},
    {key: "mean_seconds", title: "Mean", number: true, wide: true,
     show: (row) => duration(row.mean_seconds)},
    {key: "longest_seconds", title: "Longest", number: true,
     show: (row) => duration(row.longest_seconds),
     mark: (row) => row.longest_seconds > 0.1 ? "bad" : row.longest_seconds > 0.01 ? "warn" : ""},
  ];
  return [search_tools("Where the loops spend their time; longer than 10 ms is a stall."),
          local_table(columns, rows, "No callback has run yet.")];
}

// Tasks and connections, which the server searches, sorts and divides into pages.

const silent = (answer) => make("p", {className: "pill bad", textContent: "No answer from " +
    answer.silent_loops.join(", ") + ": blocked by a callback, see Loops."});

/** The search field, the buttons that turn pages, and the loops that have not answered. */
function page_tools(answer) {
  const first = answer.matching > 0 ? answer.offset + 1 : 0;
  const last = Math.min(answer.offset + page_rows, answer.matching);
  const tools = search_tools(first + "–" + last + " of " + answer.matching +
      (answer.matching < answer.total ? " (" + answer.total + " in total)" : "") +
      (answer.is_complete ? "" : ", more are not listed"));
  const step = (title, offset) => {
    const button = make("button", {type: "button", textContent: title, id: title.toLowerCase(),
        disabled: offset < 0 || offset >= answer.matching});
    button.addEventListener("click", () => change({offset: String(offset)}));
    return button;
  };
  tools.append(step("Previous", answer.offset - page_rows), step("Next", answer.offset + page_rows));
  return answer.silent_loops.length > 0 ? [tools, silent(answer)] : [tools];
}

async function show_tasks() {
  const parameters = new URLSearchParams({q: state.q, sort: state.sort, offset: state.offset,
                                          limit: page_rows});
  const answer = await get_json("tasks?" + parameters);
  const columns = [
    {key: "awaits", title: "Awaits", show: (row) => {
      const text = make("span", {}, row.awaits + (row.fd >= 0 ? " (fd " + row.fd + ")" : ""));
      text.style.paddingLeft = (state.sort === "" ? row.depth : 0) + "em";
      return text;
    }},
    {key: "awaits_at", title: "At", show: (row) => make("code", {}, row.awaits_at)},
    {key: "waited", title: "Waited", number: true, show: (row) => duration(row.waited_seconds)},
    {key: "spawned_at", title: "Spawned at", wide: true,
     show: (row) => make("code", {}, row.spawned_at)},
    {key: "loop", title: "Loop", wide: true},
  ];
  const parts = page_tools(answer);
  // In the order of the tree, or by time: other columns are searched.
  parts.push(answer.total === 0
      ? make("div", {className: "frame empty", textContent: "No task exists."})
      : table(columns, answer.tasks, (column) => change(
          {sort: column.key === "waited" && state.sort === "" ? "waited" : "", order: "desc",
           offset: "0"})));
  return parts;
}

async function show_connections() {
  const parameters = new URLSearchParams({q: state.q, sort: state.sort, order: state.order || "asc",
                                          offset: state.offset, limit: page_rows});
  const answer = await get_json("connections?" + parameters);
  const idle = (row) => row.type === "tcp" && row.state !== "listen"
      ? duration(row.idle_ms / 1000) : "";
  const columns = [
    {key: "fd", title: "fd", number: true, wide: true},
    {key: "peer", title: "Peer", show: (row) => row.state === "listen" ? "(listener)" : row.peer},
    {key: "local", title: "Local", wide: true},
    {key: "state", title: "State", show: (row) => row.state || row.type},
    {key: "awaits", title: "Awaits", wide: true, show: (row) => row.awaits || (row.loop ? "" : "no event")},
    {key: "idle_ms", title: "Idle", number: true, show: idle},
    {key: "unread_bytes", title: "Unread", number: true, show: (row) => bytes(row.unread_bytes),
     mark: (row) => row.unread_bytes > 65536 ? "warn" : ""},
    {key: "unsent_bytes", title: "Unsent", number: true, show: (row) => bytes(row.unsent_bytes),
     mark: (row) => row.unsent_bytes > 65536 ? "warn" : ""},
    {key: "rtt_us", title: "RTT", number: true, wide: true,
     show: (row) => row.rtt_us > 0 ? duration(row.rtt_us / 1e6) : ""},
    {key: "backlog", title: "Backlog", number: true, wide: true,
     show: (row) => row.state === "listen" ? String(row.backlog) : ""},
    {key: "loop", title: "Loop", wide: true},
    {key: "place", title: "Task", wide: true, show: (row) => make("code", {}, row.place)},
  ];
  const parts = page_tools(answer);
  parts.push(table(columns, answer.connections, (column) => change(next_order(column))));
  return parts;
}

// Events and connections of evhttp, of programs on the drop-ins.

async function show_events() {
  const parameters = new URLSearchParams({q: state.q, sort: state.sort, order: state.order || "asc",
                                          offset: state.offset, limit: page_rows});
  const answer = await get_json("events?" + parameters);
  const buffered = (key) => (row) => row.kind === "bufferevent" ? bytes(row[key]) : "";
  const columns = [
    {key: "kind", title: "Kind"},
    {key: "fd", title: "fd", number: true, show: (row) => row.fd >= 0 ? String(row.fd) : ""},
    {key: "awaits", title: "Awaits", show: (row) => row.is_due ? "due" : row.awaits},
    {key: "due_seconds", title: "Due in", number: true,
     show: (row) => row.due_seconds < 0 ? "" : duration(row.due_seconds)},
    {key: "unread_bytes", title: "Unread", number: true, wide: true, show: buffered("unread_bytes")},
    {key: "unsent_bytes", title: "Unsent", number: true, wide: true, show: buffered("unsent_bytes")},
    {key: "priority", title: "Priority", number: true, wide: true},
    {key: "function", title: "Callback", show: (row) => make("code", {}, row.function)},
    {key: "loop", title: "Loop", wide: true},
  ];
  const parts = page_tools(answer);
  parts.push(table(columns, answer.events, (column) => change(next_order(column))));
  return parts;
}

async function show_evhttp() {
  const rows = (await get_json("evhttp")).connections;
  const columns = [
    {key: "peer", title: "Peer"}, {key: "side", title: "Side", wide: true},
    {key: "state", title: "State"}, {key: "method", title: "Request"},
    {key: "unread_bytes", title: "Unread", number: true, show: (row) => bytes(row.unread_bytes)},
    {key: "unsent_bytes", title: "Unsent", number: true, show: (row) => bytes(row.unsent_bytes)},
    {key: "fd", title: "fd", number: true, wide: true}, {key: "loop", title: "Loop", wide: true},
  ];
  return [search_tools(rows.length + " connections of evhttp"),
          local_table(columns, rows, "The program has no connections of evhttp.")];
}

// Metrics, in the text format of Prometheus.

function parse_metrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const label of (found[2] || "").matchAll(/([\w]+)="((?:[^"\\]|\\.)*)"/g))
      labels[label[1]] = label[2].replace(/\\(.)/g, (_, c) => c === "n" ? "\n" : c);
    samples.push({name: found[1], labels: labels, text: found[2] || "", value: Number(found[3])});
  }
  return samples;
}

async function metrics() {
  const answer = await get("metrics");
  return answer.status === 200 ? parse_metrics(answer.text) : [];
}

let last_requests = new Map();
let last_requests_time = 0;

async function show_http() {
  const routes = new Map();
  for (const sample of await metrics()) {
    if (!sample.name.startsWith("http_re")) continue;
    const {method, route, status, le} = sample.labels;
    const key = method + " " + route;
    if (!routes.has(key)) {
      routes.set(key, {route: (method + " " + (route || "(no route)")).trim(), requests: 0,
                       "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, failures: 0, bounds: [], upto: [],
                       seconds: 0});
    }
    const entry = routes.get(key);
    if (sample.name === "http_requests_total") {
      entry[status] = sample.value;
      entry.requests += sample.value;
    } else if (sample.name === "http_request_duration_seconds_bucket") {
      entry.upto.push(sample.value);
      if (le !== "+Inf") entry.bounds.push(Number(le));
    } else if (sample.name === "http_request_duration_seconds_sum") {
      entry.seconds = sample.value;
    } else if (sample.name === "http_response_failures_total") {
      entry.failures = sample.value;
    }
  }
  const now = performance.now();
  const rows = [...routes.values()].filter((row) => row.requests > 0);
  for (const row of rows) {
    const counts = row.upto.map((number, i) => number - (i > 0 ? row.upto[i - 1] : 0));
    row.median = quantile(row.bounds, counts, 0.5);
    row.p99 = quantile(row.bounds, counts, 0.99);
    const before = last_requests.get(row.route);
    row.rate = before === undefined ? 0
        : (row.requests - before) * 1000 / Math.max(now - last_requests_time, 1);
  }
  last_requests = new Map(rows.map((row) => [row.route, row.requests]));
  last_requests_time = now;
  const number = (key, title, more = {}) => Object.assign(
      {key: key, title: title, number: true, show: (row) => count(row[key])}, more);
  const columns = [
    {key: "route", title: "Route", show: (row) => make("code", {}, row.route)},
    number("rate", "Requests/s"), number("requests", "Requests", {wide: true}),
    number("2xx", "2xx", {wide: true}), number("3xx", "3xx", {wide: true}),
    number("4xx", "4xx", {wide: true}),
    number("5xx", "5xx", {mark: (row) => row["5xx"] > 0 ? "bad" : ""}),
    number("failures", "Failed", {wide: true, mark: (row) => row.failures > 0 ? "warn" : ""}),
    number("median", "Median", {show: (row) => duration(row.median)}),
    number("p99", "99 %", {show: (row) => duration(row.p99),
                           mark: (row) => row.p99 > 1 ? "bad" : row.p99 > 0.1 ? "warn" : ""}),
  ];
  return [search_tools("Requests by route, since the program was started."),
          local_table(columns, rows, "No requests are counted: pass a collector to the inspector, " +
                      "and use http::Metrics with its registry.")];
}

async function show_metrics() {
  const rows = (await metrics()).filter((sample) => !sample.name.endsWith("_bucket")).map(
      (sample) => ({name: sample.name, labels: sample.text, value: sample.value}));
  const columns = [
    {key: "name", title: "Metric", show: (row) => make("code", {}, row.name)},
    {key: "labels", title: "Labels", show: (row) => make("code", {}, row.labels)},
    {key: "value", title: "Value", number: true, show: (row) => String(row.value)},
  ];
  return [search_tools(rows.length + " series"),
          local_table(columns, rows, "There are no metrics: pass a collector to the inspector.")];
}

// Resolvers and TLS contexts, from their metrics.

/** One row for each value of a label, with the metrics whose names begin with a prefix. */
function rows_of(samples, prefix, label) {
  const rows = new Map();
  for (const sample of samples) {
    if (!sample.name.startsWith(prefix) || sample.labels[label] === undefined) continue;
    const key = sample.text;
    if (!rows.has(key)) rows.set(key, Object.assign({name: sample.labels[label]}, sample.labels));
    rows.get(key)[sample.name.slice(prefix.length).replace(/_total$/, "")] = sample.value;
  }
  return [...rows.values()];
}

async function show_names() {
  const samples = await metrics();
  const number = (key, title, more = {}) => Object.assign(
      {key: key, title: title, number: true, show: (row) => count(row[key] || 0)}, more);
  const share = (key, title, part, whole) => ({key: key, title: title, number: true,
      show: (row) => row[whole] > 0 ? percent(row[part] / row[whole]) : ""});
  const bad = (key) => ({mark: (row) => row[key] > 0 ? "warn" : ""});
  const resolvers = [
    {key: "name", title: "Resolver"}, number("lookups", "Lookups"),
    share("cache_hits", "Cached", "cache_hits", "lookups"),
    {key: "cache_bytes", title: "Cache", number: true, show: (row) => bytes(row.cache_bytes || 0)},
    number("queries_in_flight", "In flight", bad("queries_in_flight")),
    number("retries", "Repeated", bad("retries")),
    number("fallbacks", "Fallbacks", {wide: true}),
    number("rejected_responses", "Rejected", Object.assign({wide: true}, bad("rejected_responses"))),
  ];
  const servers = [
    {key: "name", title: "Name server"}, {key: "resolver", title: "Resolver"},
    {key: "latency_seconds", title: "Latency", number: true,
     show: (row) => row.responses > 0 ? duration(row.latency_seconds) : "",
     mark: (row) => row.latency_seconds > 0.1 ? "bad" : row.latency_seconds > 0.02 ? "warn" : ""},
    number("responses", "Responses"), number("timeouts", "Timeouts", bad("timeouts")),
    {key: "up", title: "State", show: (row) => row.up > 0 ? "" : "does not respond",
     mark: (row) => row.up > 0 ? "" : "bad"},
  ];
  const contexts = [
    {key: "name", title: "TLS context"}, number("handshakes", "Handshakes"),
    share("resumed_handshakes", "Resumed sessions", "resumed_handshakes", "handshakes"),
    number("failed_handshakes", "Failed", bad("failed_handshakes")),
    number("displaced_handshakes", "Displaced", Object.assign({wide: true}, bad("displaced_handshakes"))),
    number("reloads", "Certificates loaded", {wide: true}),
    number("failed_reloads", "Not loaded", Object.assign({wide: true}, bad("failed_reloads"))),
  ];
  const hint = "pass a collector to the inspector, and add them to it.";
  return [search_tools(""),
          local_table(resolvers, rows_of(samples.filter((sample) => !("server" in sample.labels)),
                                         "tambour_dns_", "resolver"), "No resolvers: " + hint),
          local_table(servers, rows_of(samples, "tambour_dns_name_server_", "server"),
                      "No lookup was made."),
          local_table(contexts, rows_of(samples, "tambour_tls_", "context"), "No TLS contexts: " + hint)];
}

async function show_workers() {
  const rows = (await get_json("workers")).pools;
  const number = (key, title, more = {}) => Object.assign(
      {key: key, title: title, number: true, show: (row) => count(row[key])}, more);
  const columns = [
    {key: "name", title: "Pool"}, number("threads", "Threads"), number("threads_max", "At most"),
    number("running", "Running",
           {mark: (row) => row.running >= row.threads_max ? "warn" : ""}),
    number("queued", "Queued", {mark: (row) => row.queued > 0 ? "warn" : ""}),
    number("completed", "Completed"),
    number("refused", "Refused", {mark: (row) => row.refused > 0 ? "bad" : ""}),
  ];
  return [local_table(columns, rows, "There are no pools.")];
}

async function show_profiles() {
  const answer = await get_json("profiles");
  const card = (title, path, has, hint, text) => make("section", {className: "card"},
      make("h2", {}, title), make("p", {className: "quiet", textContent: has ? text : hint}),
      has ? make("a", {href: path, textContent: "Record for 10 s", download: ""}) : null);
  return [make("div", {className: "cards"},
      card("CPU", "profiles/cpu?seconds=10", answer.has_cpu, answer.cpu_hint,
           "Where the threads of the process spend their time. Open the file with pprof."),
      card("Heap", "profiles/heap?seconds=10", answer.has_heap, answer.heap_hint,
           "What was allocated meanwhile and is not freed. Open the file with pprof."))];
}

// Refreshing.

const views = {loops: async () => null, callbacks: show_callbacks, tasks: show_tasks,
               events: show_events, connections: show_connections, http: show_http,
               evhttp: show_evhttp, metrics: show_metrics, names: show_names,
               workers: show_workers, profiles: show_profiles};
let is_paused = false;
let refreshing = 0;
let timer = 0;

async function show_state_of(path, id, good, bad) {
  const answer = await get(path);
  const pill = element(id);
  pill.textContent = answer.status === 200 ? good : bad;
  pill.className = "pill " + (answer.status === 200 ? "good" : "bad");
}

/** Replaces the view, but keeps the text field in which the user types, and the scroll position. */
function replace_view(parts) {
  const view = element("view");
  const typed = document.activeElement && document.activeElement.id === "search"
      ? document.activeElement : null;
  const left = view.querySelector(".frame") ? view.querySelector(".frame").scrollLeft : 0;
  view.replaceChildren(...parts);
  const box = element("search");
  if (typed && box) {
    const [start, end] = [typed.selectionStart, typed.selectionEnd];
    box.value = typed.value;
    box.focus({preventScroll: true});
    box.setSelectionRange(start, end);
  }
  const frame = view.querySelector(".frame");
  if (frame) frame.scrollLeft = left;
}

async function refresh() {
  clearTimeout(timer);
  const number = ++refreshing;
  show_choices();
  try {
    const show = views[state.tab] || views.loops;
    const [loops, parts] = await Promise.all([
      show_loops(), show(), show_state_of("health", "health", "healthy", "blocked"),
      show_state_of("ready", "ready", "ready", "not ready")]);
    if (number !== refreshing) return;  // The user has chosen something else meanwhile.
    element("problem").hidden = true;
    replace_view(parts || loops || []);
    element("age").textContent = new Date().toLocaleTimeString();
    document.body.dataset.refreshes = String(Number(document.body.dataset.refreshes || 0) + 1);
  } catch (error) {
    if (number !== refreshing) return;
    element("problem").textContent = "The program does not answer: " + error.message;
    element("problem").hidden = false;
  }
  if (!is_paused) timer = setTimeout(refresh, interval_seconds() * 1000);
}

function show_choices() {
  for (const tab of element("tabs").children) {
    const is_chosen = tab.getAttribute("href") === "#tab=" + state.tab;
    tab.setAttribute("aria-selected", String(is_chosen));
  }
  const is_dark = state.theme === "dark" ||
      (state.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = is_dark ? "dark" : "light";
  element("theme").textContent = {dark: "Dark", light: "Light"}[state.theme] || "Auto";
}

element("tabs").addEventListener("click", (event) => {
  const href = event.target.getAttribute("href");
  if (!href) return;
  event.preventDefault();
  change({tab: href.slice("#tab=".length), q: "", sort: "", order: "", offset: "0"});
});
element("pause").addEventListener("click", () => {
  is_paused = !is_paused;
  element("pause").textContent = is_paused ? "Resume" : "Pause";
  element("pause").setAttribute("aria-pressed", String(is_paused));
  if (is_paused) clearTimeout(timer);
  else refresh();
});
element("theme").addEventListener("click", () => {
  change({theme: {"": "light", light: "dark", dark: ""}[state.theme] ?? ""});
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show_choices);
addEventListener("hashchange", () => {
  const box = element("search");
  if (box) box.blur();  // Its text is that of the view before.
  read_state();
  refresh();
});
read_state();
refresh();
