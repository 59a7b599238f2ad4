import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqual, type Prompt } from "./indexEquality.ts";
import { startEngine, stopEngine } from "./kit/engine.ts";
import { TokenPrompts } from "./prompts.ts";
import { setUp, until, viewStates } from "./routerSetup.ts";
import { Truth } from "./truth.ts";

describe("an engine that dies in the middle of traffic and comes back", () => {
  it("costs no request, and what it held is forgotten and learned anew", async () => {
    await using setup = await setUp(engines);
    const [first, second] = engines;
    const replica = setup.router.fleet.replicas().find(({ endpoint }) => endpoint.url === second!.url)!;
    const { incarnation } = replica;
    const make = new TokenPrompts(8);
    const stems = Array.from({ length: 6 }, () => make.ids(300));
    const prompts: Prompt[] = [];
    const statuses = new Map<number, number>();
    const errors: string[] = [];
    const traffic = { goesOn: true, pauseMs: 0 };
    const client = async (): Promise<void> => {
      while (traffic.goesOn) {
        const prompt = { ids: [...stems[make.below(6)]!, ...make.ids(1 + make.below(60))], kind: {} };
        prompts.push(prompt);
        const answer = await fetch(`${setup.url}/v1/completions`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            model: "target",
            prompt: prompt.ids,
            max_tokens: 4,
            temperature: 0,
            ignore_eos: true,
          }),
        });
        const text = await answer.text();
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status !== 200) errors.push(text);
        await new Promise((resolve) => setTimeout(resolve, traffic.pauseMs));
      }
    };
    const clients = [client(), client(), client()];
    await until("both have worked", () => prompts.length > 20);
    await stopEngine(second!, "SIGKILL");
    await until("it is not used any more", () => replica.lifecycle.state !== "ready");
    const died = prompts.length;
    await until("the other one goes on", () => prompts.length > died + 20);
    // A start needs the processor, too.
    traffic.pauseMs = 1000;
    await startEngine(second!);
    traffic.pauseMs = 0;
    await until("it is known to be another process", () => replica.incarnation !== incarnation);
    await until("it is used again", () => replica.lifecycle.state === "ready");
    await until("its events are followed again", () => viewStates(setup.router).every((state) => state === "live"));
    const back = prompts.length;
    await until("traffic goes on", () => prompts.length > back + 20);
    traffic.goesOn = false;
    await Promise.all(clients);
    // An answer of which a part had come cannot be asked for again; these are short, and come in one piece.
    assert.ok((statuses.get(200) ?? 0) >= prompts.length - 3, `${JSON.stringify([...statuses])} ${errors.join("\n")}`);
    await using truthFirst = await Truth.of(first!);
    await using truthSecond = await Truth.of(second!);
    await assertEqual(setup.router, [truthFirst, truthSecond], prompts.slice(-200));
  });
});
