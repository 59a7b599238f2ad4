import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { ModelledEngine } from "../world/modelledEngine.ts";
import type { Incident } from "../world/runSettings.ts";
import type { World } from "../world/world.ts";
import { engineUnreachable } from "./failures.ts";
import { PRIORITY } from "./priorities.ts";

/** What befalls an engine at a moment. */
class Befalls implements SimEvent<World> {
  readonly atMs: number;
  readonly priority = PRIORITY.incident;
  readonly #act: (world: World) => readonly SimEvent<World>[];

  constructor(atMs: number, act: (world: World) => readonly SimEvent<World>[]) {
    this.atMs = atMs;
    this.#act = act;
  }

  handle(world: World): readonly SimEvent<World>[] {
    return this.#act(world);
  }
}

export function incidents(world: World): readonly SimEvent<World>[] {
  return world.settings.incidents.map((incident) => {
    const engine = world.engines[incident.engine]!;
    return new Befalls(incident.atMs, (world) => befall(incident, engine, world));
  });
}

function befall(incident: Incident, engine: ModelledEngine, world: World): readonly SimEvent<World>[] {
  if (incident.kind === "slow") {
    engine.slowDown(incident.factor);
    return NOTHING;
  }
  const error = engineUnreachable(engine.name);
  const died = engine.incarnation;
  const consequences = engine.crash().flatMap((flight) => flight.router.attemptFailed(flight, error, world));
  const listensMs = incident.atMs + incident.downMs;
  return [
    ...consequences,
    ...world.carryOut(),
    new Befalls(listensMs, () => becomes(engine, died, "loading")),
    new Befalls(listensMs + incident.loadMs, () => becomes(engine, died, "up")),
  ];
}

/** The process after the one that died comes up, unless that was interrupted by another crash. */
function becomes(engine: ModelledEngine, died: number, state: "loading" | "up"): readonly SimEvent<World>[] {
  if (state === "loading" && engine.incarnation === died) {
    engine.incarnation++;
    engine.state = "loading";
  } else if (state === "up" && engine.state === "loading" && engine.incarnation === died + 1) engine.state = "up";
  return NOTHING;
}
