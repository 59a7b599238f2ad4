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

function tile(name, text, value) {
  const values = history.get(name) ?? [];
  history.set(name, [...values, value].slice(-HISTORY));
  const made = element("div", undefined, "tile");
  made.append(element("span", name), element("b", text), sparkline(history.get(name)));
  return made;
}

function tiles(status) {
  const { decisions, replicas } = status;
  const prompt = decisions.reduce((sum, decision) => sum + decision.promptTokens, 0);
  const cached = decisions.reduce((sum, decision) => sum + decision.cachedTokens, 0);
  const cachedShare = prompt === 0 ? 0 : cached / prompt;
  const pending = replicas.reduce((sum, replica) => sum + replica.pendingPrefillTokens, 0);
  byId("tiles").replaceChildren(
    tile("in flight", count(status.inFlight), status.inFlight),
    tile("queued", count(status.queue.requests), status.queue.requests),
    tile(
      "replicas taking requests",
      `${status.replicas.filter(({ routable }) => routable).length} / ${replicas.length}`,
      replicas.length,
    ),
    tile("prefill pending, tokens", count(pending), pending),
    tile("cached, last decisions", percent(cachedShare), cachedShare * 100),
  );
}

function bar(value, most, text) {
  const cell = element("td");
  const meter = element("meter");
  meter.max = most > 0 ? most : 1;
  meter.value = value ?? 0;
  meter.high = 0.85 * meter.max;
  cell.append(meter, text);
  return cell;
}

const slowness = (factor) =>
  factor > 1.25 ? `${factor.toFixed(1)}× slow` : factor < 0.8 ? `${(1 / factor).toFixed(1)}× fast` : "as known";

function replicaRow(replica) {
  const row = element("tr");
  const name = element("td", replica.replica);
  name.title = [replica.url, replica.engine, replica.version, ...replica.models].filter(Boolean).join(" · ");
  const state = replica.state === "ready" ? (replica.routable ? "good" : "warn") : "bad";
  row.append(
    name,
    element("td", replica.routable || replica.state !== "ready" ? replica.state : "held back", state),
    bar(
      replica.reservedRequests,
      replica.maxRunningRequests,
      `${count(replica.reservedRequests)} / ${count(replica.maxRunningRequests)}`,
    ),
    bar(replica.kvUsage, 1, percent(replica.kvUsage)),
    element("td", count(replica.pendingPrefillTokens)),
    element("td", count(replica.indexedBlocks)),
    element("td", `${slowness(replica.prefillSlowness)} · ${slowness(replica.stepSlowness)}`),
    element("td", `${percent(replica.prefillMape)} · ${percent(replica.stepMape)}`),
    element("td", age(replica.metricsAgeMs)),
  );
  return row;
}

function decisionRow(decision) {
  const row = element("tr");
  row.tabIndex = 0;
  row.setAttribute("aria-selected", String(decision.id === selected));
  row.append(
    element("td", age(decision.ageMs)),
    element("td", decision.replica),
    element("td", millis(decision.totalMs)),
    element("td", `${count(decision.cachedTokens)} / ${count(decision.promptTokens)}`),
    element("td", decision.branch),
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
    return element("li", `${kind}: ${first.message}${also}`);
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
