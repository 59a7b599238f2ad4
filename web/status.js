// The status page: asks the admin listener once a second and draws what it says. No build step, no dependencies.

const EVERY_MS = 1000;
const HISTORY = 120;
const byId = (id) => document.getElementById(id);
const history = new Map();
let token = sessionStorage.getItem("kvasir-admin-token");
let selected = null;

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function ask(path) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (answer.status === 401) throw new Unauthorised();
  if (!answer.ok) throw new Error(`the router answered ${answer.status}`);
  return answer.json();
}

class Unauthorised extends Error {}

const whole = new Intl.NumberFormat("en");
const count = (value) => (value === null || value === undefined ? "–" : whole.format(Math.round(value)));
const rate = (value) => (value === null ? "–" : value.toFixed(value < 100 ? 1 : 0));
const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 100)}%`);
const millis = (ms) =>
  ms === null || ms === undefined
    ? "–"
    : ms >= 10_000
      ? `${(ms / 1000).toFixed(1)} s`
      : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
const age = (ms) => (ms === null ? "never" : ms < 1000 ? "now" : `${Math.round(ms / 1000)} s`);

function sparkline(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${HISTORY - 1} 28`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const top = Math.max(1, ...values);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const from = HISTORY - values.length;
  line.setAttribute("points", values.map((value, i) => `${from + i},${27 - (value / top) * 26}`).join(" "));
  line.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(line);
  return svg;
}

/** What was asked lately, the oldest first: rates are differences. */
const samples = [];
const WINDOW_MS = 15_000;

/** Since `WINDOW_MS` ago: rates, the cached share, and times to first token by their histogram. Null: nothing came. */
function lately(totals) {
  const nowMs = performance.now();
  samples.push({ atMs: nowMs, totals });
  // A restarted router counts from 0 again.
  if (totals.requests < samples[0].totals.requests) samples.splice(0, samples.length - 1);
  while (samples.length > 2 && samples[1].atMs < nowMs - WINDOW_MS) samples.shift();
  const [{ atMs, totals: before }] = samples;
  const seconds = (nowMs - atMs) / 1000;
  const since = (name) => totals[name] - before[name];
  const perSecond = (name) => (seconds > 0 ? since(name) / seconds : null);
  const counts = totals.timeToFirstToken.counts.map((count, at) => count - before.timeToFirstToken.counts[at]);
  return {
    requestsPerS: perSecond("requests"),
    outputTokensPerS: perSecond("outputTokens"),
    cachedShare: since("promptTokens") > 0 ? since("cachedTokens") / since("promptTokens") : null,
    ttftP50Ms: quantileMs(0.5, counts, totals.timeToFirstToken.boundsMs),
    ttftP99Ms: quantileMs(0.99, counts, totals.timeToFirstToken.boundsMs),
  };
}

/** Within a bucket values are taken to be spread evenly, as Prometheus does. */
function quantileMs(quantile, counts, boundsMs) {
  const wanted = quantile * counts.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return null;
  let below = 0;
  for (let at = 0; at < boundsMs.length; at++) {
    const from = at === 0 ? 0 : boundsMs[at - 1];
    if (below + counts[at] >= wanted) return from + ((boundsMs[at] - from) * (wanted - below)) / counts[at];
    below += counts[at];
  }
  return boundsMs.at(-1);
}

function tile(name, text, value, more = "") {
  const values = history.get(name) ?? [];
  history.set(name, [...values, value ?? 0].slice(-HISTORY));
  const made = element("div", undefined, "tile");
  const title = element("span", name);
  if (more !== "") title.append(element("small", more));
  made.append(title, element("b", text), sparkline(history.get(name)));
  return made;
}

function tiles({ totals, inFlight, queue, replicas }) {
  const { requestsPerS, outputTokensPerS, cachedShare, ttftP50Ms, ttftP99Ms } = lately(totals);
  const taking = replicas.filter(({ routable }) => routable).length;
  byId("tiles").replaceChildren(
    tile("requests/s", rate(requestsPerS), requestsPerS),
    tile("TTFT", millis(ttftP50Ms), ttftP50Ms, ` p99 ${millis(ttftP99Ms)}`),
    tile("output tokens/s", count(outputTokensPerS), outputTokensPerS),
    tile("prompt cached", percent(cachedShare), cachedShare === null ? null : cachedShare * 100),
    tile("in flight", count(inFlight), inFlight),
    tile("queued", count(queue.requests), queue.requests),
    tile("replicas in use", `${taking} / ${replicas.length}`, taking),
  );
}

/** A cell; on a narrow screen, where the header is not shown, `label` stands before it. */
function cell(label, text, className) {
  const made = element("td", text, className);
  made.dataset.label = label;
  return made;
}

function bar(label, value, most, text) {
  const made = cell(label);
  const meter = element("meter");
  meter.max = most > 0 ? most : 1;
  meter.value = value ?? 0;
  meter.high = 0.85 * meter.max;
  made.append(meter, text);
  return made;
}

/** A speed, and how it compares with what the engine should do; what was not seen yet is said to be a guess. */
function speed(label, figure, slowness, basis) {
  const made = cell(label, figure);
  if (slowness === null) {
    made.classList.add("guess");
    made.append(` (${basis === "generic" ? "a guess" : "as configured"})`);
    made.title = "No request has shown it yet.";
  } else if (slowness > 1.5 && basis !== "generic")
    made.append(element("span", ` ${slowness.toFixed(1)}× slow`, "warn"));
  return made;
}

function replicaRow(replica) {
  const row = element("tr");
  const name = cell("replica", replica.replica);
  name.title = [replica.url, replica.engine, replica.version, ...replica.models].filter(Boolean).join(" · ");
  const state = replica.state === "ready" ? (replica.routable ? "good" : "warn") : "bad";
  const slots = replica.maxRunningRequests;
  const { prefillTokensPerSecond, prefillSlowness, stepMs, stepSlowness, basis } = replica.speed;
  row.append(
    name,
    cell("state", replica.routable || replica.state !== "ready" ? replica.state : "held back", state),
    bar("requests / slots", replica.reservedRequests, slots, `${count(replica.reservedRequests)} / ${count(slots)}`),
    bar("KV cache", replica.kvUsage, 1, percent(replica.kvUsage)),
    cell("prefill pending", count(replica.pendingPrefillTokens)),
    cell("blocks indexed", count(replica.indexedBlocks)),
    speed("prefill, tokens/s", count(prefillTokensPerSecond), prefillSlowness, basis),
    speed("step", millis(stepMs), stepSlowness, basis),
    cell("model error", `${percent(replica.prefillMape)} · ${percent(replica.stepMape)}`),
    cell("facts' age", age(replica.metricsAgeMs)),
  );
  return row;
}

function decisionRow(decision) {
  const row = element("tr");
  row.tabIndex = 0;
  row.setAttribute("aria-selected", String(decision.id === selected));
  row.append(
    cell("ago", age(decision.ageMs)),
    cell("replica", decision.replica),
    cell("price", millis(decision.totalMs)),
    cell("cached / prompt tokens", `${count(decision.cachedTokens)} / ${count(decision.promptTokens)}`),
    cell("branch", decision.branch),
  );
  const open = () => explain(decision.id);
  row.addEventListener("click", open);
  row.addEventListener("keydown", (event) => event.key === "Enter" && open());
  return row;
}

async function explain(id) {
  selected = id;
  const place = byId("explained");
  try {
    const decision = await ask(`decisions/${encodeURIComponent(id)}`);
    const priced = decision.candidates.filter(({ terms }) => terms !== null);
    const widest = Math.max(1, ...priced.map((candidate) => weightedMs(candidate, decision.weights)));
    const terms = Object.keys(decision.weights ?? {});
    place.replaceChildren(
      element("b", `${decision.policy}, ${decision.branch}: ${decision.winner}`),
      element(
        "p",
        `${count(decision.promptTokens)} prompt tokens, about ${count(decision.expectedOutputTokens)} to come, attempt ${decision.attempt}`,
        "hint",
      ),
      ...priced
        .toSorted((a, b) => a.totalMs - b.totalMs)
        .map((candidate) => priceRow(candidate, decision.weights, widest)),
      ...(priced.length === 0 ? [element("p", "This policy has no prices.")] : [legend(terms)]),
      ...decision.ineligible.map(({ replicaId, reason }) => element("p", `${replicaId}: ${reason}`, "hint")),
    );
  } catch (problem) {
    place.replaceChildren(element("p", problem.message, "bad"));
  }
}

function weightedMs({ terms }, weights) {
  return Object.entries(terms).reduce((sum, [term, { ms }]) => sum + (ms ?? 0) * weights[term], 0);
}

function priceRow(candidate, weights, widest) {
  const row = element("div", undefined, candidate.chosen ? "price chosen" : "price");
  const stack = element("div", undefined, "stack");
  Object.entries(candidate.terms).forEach(([term, { ms, basis }], at) => {
    const weighted = (ms ?? 0) * (weights[term] ?? 1);
    if (weighted <= 0) return;
    const part = element("i", undefined, `term-${at}`);
    part.style.inlineSize = `${(100 * weighted) / widest}%`;
    part.title = `${term}: ${millis(ms)} × ${weights[term]} (${basis})`;
    stack.append(part);
  });
  row.append(element("span", candidate.replica), stack, element("span", millis(candidate.totalMs)));
  return row;
}

function legend(terms) {
  const made = element("div", undefined, "legend");
  terms.forEach((term, at) => {
    const entry = element("span");
    entry.append(element("i", undefined, `term-${at}`), term);
    made.append(entry);
  });
  return made;
}

function show(status) {
  byId("login").hidden = true;
  byId("main").hidden = false;
  const state = byId("state");
  state.className = status.ready ? "ready" : "unready";
  state.textContent = status.ready ? "ready" : `not ready: ${status.reasons.join(", ")}`;
  byId("about").textContent =
    `version ${status.version} · up ${age(status.upSeconds * 1000)} · policy ${status.policy} · ${status.models.map(({ id }) => id).join(", ")}`;
  tiles(status);
  byId("replicas").tBodies[0].replaceChildren(...status.replicas.map(replicaRow));
  byId("decisions").tBodies[0].replaceChildren(...status.decisions.map(decisionRow));
  byId("conditions-section").hidden = status.conditions.length === 0;
  byId("conditions").replaceChildren(...conditionLines(status.conditions));
}

/** One line per kind of condition: a fleet of sixty with one cause must not fill the page. */
function conditionLines(conditions) {
  const byKind = Map.groupBy(conditions, ({ condition }) => condition);
  return [...byKind].map(([kind, [first, ...others]]) => {
    const also = others.length === 0 ? "" : ` (and ${others.length} more like it)`;
    const line = element("li");
    line.append(element("b", kind), ` ${first.message}${also}`, element("p", first.mend.replaceAll("`", ""), "hint"));
    return line;
  });
}

async function refresh() {
  try {
    show(await ask("status"));
  } catch (problem) {
    if (problem instanceof Unauthorised) {
      byId("login").hidden = false;
      byId("state").textContent = "locked";
      return;
    }
    byId("state").className = "unready";
    byId("state").textContent = `no answer: ${problem.message}`;
  }
  setTimeout(refresh, document.hidden ? 10 * EVERY_MS : EVERY_MS);
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem("kvasir-admin-token", token);
  void refresh();
});
void refresh();
