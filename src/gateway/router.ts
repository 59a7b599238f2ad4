import { randomInt } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { ConfigError } from "#src/config/configError.ts";
import type { Config } from "#src/config/schema.ts";
import { processClock, type Clock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { Carrier } from "#src/dispatch/carrier.ts";
import { Deadlines } from "#src/dispatch/deadlines.ts";
import { Upstreams } from "#src/dispatch/upstreams.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { RecordedFleet } from "#src/recording/recordedFleet.ts";
import { RecordedScheduler } from "#src/recording/recordedScheduler.ts";
import { IdentityWorkers } from "#src/request/identityWorkers.ts";
import { TokenIdentities } from "#src/request/tokenIdentities.ts";
import type { Decision } from "#src/routing/decision.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import { observeInto, telemetrySources } from "#src/scheduler/schedulerTelemetry.ts";
import type { Ticket } from "#src/scheduler/ticket.ts";
import { DecisionLog } from "#src/telemetry/decisionLog.ts";
import { Metrics } from "#src/telemetry/metrics.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import packageJson from "../../package.json" with { type: "json" };
import { AdminApi } from "./admin/adminApi.ts";
import { createAdminServer } from "./admin/adminServer.ts";
import { ClientApi } from "./clientApi.ts";
import { ConfigConditions } from "./configConditions.ts";
import { EngineSet } from "./engineSet.ts";
import type { GatewayParts } from "./gatewayParts.ts";
import { HttpServer, type ServerTls } from "./http/httpServer.ts";
import { ListenError } from "./listenError.ts";
import { loadTokenizers } from "./modelTokenizers.ts";
import { Policies } from "./policies.ts";
import { readinessOf } from "./readiness.ts";
import { restartKeys } from "./restartKeys.ts";
import { decisionConfig } from "./decisionConfig.ts";
import { gatewaySettings, httpLimits, schedulerSettings } from "./settings.ts";
import { Ticker } from "./ticker.ts";
import { TrafficRecording } from "./trafficRecording.ts";
import { readTlsFiles, type TlsMaterial } from "./tlsFiles.ts";

/** Time limits of the data path are looked at this often; so late they may be. */
const DEADLINE_GRANULARITY_MS = 100;

export interface RouterOptions {
  /** Where log lines go; by default to standard output, at the configured level. */
  readonly log?: RequestLog;
  /** Seed of everything that is drawn; by default another one each time. */
  readonly seed?: number;
  /** Where the time comes from by which it decides; by default the process's. */
  readonly clock?: Clock;
}

/** A router at work. */
export interface RunningRouter {
  /** Where clients connect, with the port that was really taken. */
  readonly url: string;
  /** Null: there is no admin listener. */
  readonly adminUrl: string | null;
  readonly fleet: Fleet;
  readonly scheduler: Scheduler;
  readonly metrics: Metrics;
  readonly decisions: DecisionLog<Decision>;
  /** Takes over a new configuration. Rejects with ConfigError, and changes nothing, if it cannot be used. */
  reload(config: Config): Promise<void>;
  /** Says loudly that a new configuration was refused. */
  configRefused(error: ConfigError): void;
  /** Leaves in order: not ready, no new requests, running answers finish within the grace time. */
  drain(): Promise<void>;
  /** Leaves at once. */
  stop(): Promise<void>;
}

/** Builds a router from a configuration and starts it. Rejects with ConfigError, or when a port cannot be taken. */
export async function startRouter(config: Config, options: RouterOptions = {}): Promise<RunningRouter> {
  const router = new Router(config, await readTlsFiles(config), options);
  try {
    await router.start();
  } catch (caught) {
    await router.stop();
    throw caught;
  }
  return router;
}

class Router implements RunningRouter {
  readonly fleet: Fleet;
  readonly scheduler: Scheduler;
  readonly metrics: Metrics;
  readonly decisions = new DecisionLog<Decision>();
  url = "";
  adminUrl: string | null = null;
  readonly #clock: Clock;
  readonly #log: RequestLog;
  readonly #engines: EngineSet;
  readonly #ticker: Ticker;
  readonly #upstreams: Upstreams;
  readonly #carrier: Carrier<Placement, Ticket>;
  readonly #reader: IdentityWorkers;
  readonly #tokens: TokenIdentities;
  readonly #api: ClientApi;
  readonly #server: HttpServer;
  readonly #adminServer: HttpServer;
  readonly #tls: TlsMaterial;
  readonly #recording: TrafficRecording | null;
  readonly #startedWith: Config;
  readonly #configConditions: ConfigConditions;
  #config: Config;
  #policies: Policies;
  #draining = false;
  #reloading: Promise<void> = Promise.resolve();

  constructor(config: Config, tls: TlsMaterial, options: RouterOptions) {
    this.#startedWith = config;
    this.#config = config;
    this.#policies = new Policies(config);
    this.#tls = tls;
    this.#log = options.log ?? new RequestLog({ level: config.log.level });
    const running = (): Config => this.#config;
    const clock = (this.#clock = options.clock ?? processClock);
    const timers = processTimers;
    const log = this.#log;
    const seed = options.seed ?? randomInt(2 ** 32);
    // The scheduler has one of its own, so that its draws can be drawn again from a recording.
    const random = new SeededRandom(seed);
    const monitoring = new SeededRandom(seed ^ 0x5bd1e995);
    this.#recording = TrafficRecording.of(config, {
      seed,
      version: packageJson.version,
      onError: (cause) => log.event("error", "the recording cannot be written", { cause: cause.message }),
    });
    const recorder = this.#recording?.recorder ?? null;
    const startedSeconds = Math.floor(Date.now() / 1000);

    const fleetOptions = { maxReplicas: config.discovery.maxEngines };
    const fleet = recorder === null ? new Fleet(fleetOptions) : new RecordedFleet(fleetOptions, recorder);
    this.metrics = new Metrics({
      ...telemetrySources(
        () => fleet,
        () => this.scheduler,
        () => clock.nowMs(),
      ),
      kvStreams: () => this.#engines.kvStreams(),
    });
    const observer = { ...observeInto(this.metrics, this.decisions), queued: () => this.#ticker.arm() };
    const schedulerOptions = { fleet, random, observer, ...schedulerSettings(decisionConfig(config), this.#policies) };
    const scheduler =
      recorder === null ? new Scheduler(schedulerOptions) : new RecordedScheduler(schedulerOptions, recorder);
    this.#ticker = new Ticker(clock, timers, fleet, scheduler);
    this.#engines = new EngineSet(config, {
      fleet,
      log,
      clock,
      timers,
      random: monitoring,
      authorities: tls.engineAuthorities,
      recorder,
    });

    const deadlines = new Deadlines({ clock, timers, granularityMs: DEADLINE_GRANULARITY_MS });
    const engineTls = tls.engineAuthorities === undefined ? {} : { ca: tls.engineAuthorities };
    this.#upstreams = new Upstreams({ clock, deadlines, tls: engineTls });
    this.#carrier = new Carrier({
      scheduler,
      upstreams: this.#upstreams,
      clock,
      get maxRetries() {
        return running().limits.retries;
      },
    });
    this.#reader = new IdentityWorkers({
      threads: config.identity.workerThreads,
      inlineBytes: config.identity.workerFromBytes,
    });
    this.#tokens = new TokenIdentities({ threads: config.identity.tokenThreads });
    const parts: GatewayParts = {
      fleet,
      scheduler,
      carrier: this.#carrier,
      metrics: this.metrics,
      log,
      clock,
      reader: this.#reader,
      tokens: this.#tokens,
      readiness: () => readinessOf(fleet, this.#engines.warmStart, this.#draining, clock.nowMs()),
      startedSeconds,
    };
    this.#api = new ClientApi(parts, gatewaySettings(config, clock.nowMs()));
    this.#server = new HttpServer({
      limits: httpLimits(running),
      clock,
      deadlines,
      ...(tls.listen === undefined ? {} : { tls: tls.listen }),
      admit: (head) => this.#api.admit(head),
      handle: (request, downstream) => this.#api.handle(request, downstream),
      render: (error, head) => this.#api.render(error, head),
    });
    const adminApi = new AdminApi({
      ...parts,
      decisions: this.decisions,
      source: () => this.#engines.admin,
      config: running,
      version: packageJson.version,
    });
    this.#adminServer = createAdminServer({ api: adminApi, clock, deadlines, config: running, tls: tls.admin });
    this.fleet = fleet;
    this.#configConditions = new ConfigConditions(fleet.conditions, log);
    this.scheduler = scheduler;
  }

  async start(): Promise<void> {
    const { listen, admin, policy } = this.#config;
    await loadTokenizers(this.#config, this.#tokens);
    this.url = addressUrl(this.#tls.listen, await taken("listen", this.#server.listen(listen)));
    if (admin.enabled)
      this.adminUrl = addressUrl(this.#tls.admin, await taken("admin", this.#adminServer.listen(admin)));
    this.#configConditions.taken(this.#config, this.#clock.nowMs());
    this.#log.event("info", "router started", { url: this.url, adminUrl: this.adminUrl, policy: policy.name });
    // Not awaited: a slow name server must not keep the engines that are known from being used.
    this.#engines.start().catch((caught: unknown) => {
      this.#log.event("error", "discovery failed", { cause: String(caught) });
    });
  }

  reload(config: Config): Promise<void> {
    const done = this.#reloading.then(() => this.#reload(config));
    this.#reloading = done.catch(() => undefined);
    return done;
  }

  async #reload(config: Config): Promise<void> {
    const policies = new Policies(config, this.#policies);
    await loadTokenizers(config, this.#tokens);
    const nowMs = this.#clock.nowMs();
    const waiting = restartKeys(this.#startedWith, config);
    this.#policies = policies;
    this.#config = config;
    this.#recording?.configure(config);
    this.scheduler.configure(schedulerSettings(decisionConfig(config), policies));
    this.#api.configure(gatewaySettings(config, nowMs, this.#api.clients));
    this.#configConditions.reloaded(config, waiting, nowMs);
    await this.#engines.reload(config);
  }

  configRefused(error: ConfigError): void {
    this.#configConditions.refused(error, this.#clock.nowMs());
  }

  async drain(): Promise<void> {
    const { drainDelayMs, drainGraceMs } = this.#config.limits;
    if (this.#draining) return;
    this.#draining = true;
    this.#log.event("info", "draining", { active: this.#carrier.active, drainDelayMs, drainGraceMs });
    await this.#pause(drainDelayMs);
    this.scheduler.shutdown();
    const closed = this.#server.drain();
    const late = this.#pause(drainGraceMs).then(() => "late" as const);
    if ((await Promise.race([closed, late])) === "late") {
      this.#log.event("warn", "the grace time is over", { active: this.#carrier.active });
      this.#carrier.abortAll();
    }
    await this.stop();
  }

  async stop(): Promise<void> {
    this.#draining = true;
    this.#ticker.stop();
    this.scheduler.shutdown();
    this.#carrier.abortAll();
    await Promise.all([this.#server.close(), this.#adminServer.close(), this.#engines.stop()]);
    await Promise.all([this.#reader.close(), this.#tokens.close()]);
    this.#upstreams.close();
    this.metrics.close();
    await this.#recording?.close();
    if (this.url !== "") this.#log.event("info", "router stopped");
    await this.#log.close();
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => void processTimers.after(forMs, resolve));
  }
}

async function taken(listener: "listen" | "admin", listening: Promise<AddressInfo>): Promise<AddressInfo> {
  try {
    return await listening;
  } catch (cause) {
    throw new ListenError(listener, cause);
  }
}

function addressUrl(tls: ServerTls | undefined, { address, port }: { address: string; port: number }): string {
  return `${tls === undefined ? "http" : "https"}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
