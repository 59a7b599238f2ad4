import { PriorityQueue } from "../priorityQueue.ts";
import type { Flow, Waiter } from "./flow.ts";
import type { ClassShare, ModelShare } from "./modelShare.ts";

/**
 * Those that wait for a model in the order in which they will be served, if nobody else comes and any replica will do.
 * Guarantees are left out: they let a lower class go sooner than this says.
 *
 * @param rankOf place within the flow, least first
 */
export function serviceOrder<T extends Waiter>(share: ModelShare<T>, rankOf: (waiter: T) => number): T[] {
  const classes = [...share.classes()].filter(({ waiting }) => waiting > 0);
  classes.sort((a, b) => (share.classBefore(a, b) ? -1 : 1));
  return classes.flatMap((each) => classOrder(each, rankOf));
}

function classOrder<T extends Waiter>({ flows }: ClassShare<T>, rankOf: (waiter: T) => number): T[] {
  const turns = new PriorityQueue<{ flow: Flow<T>; left: T[] }>();
  for (const flow of flows.waitingFlows()) {
    const left = flow.newest.values().sort((a, b) => rankOf(b) - rankOf(a) || b.sequence - a.sequence);
    turns.push({ flow, left }, flow.servedUntil, flow.number);
  }
  const order: T[] = [];
  for (let turn = turns.first; turn !== null; turn = turns.first) {
    const { flow, left } = turn.value;
    const next = left.pop()!;
    order.push(next);
    turns.remove(turn);
    if (left.length > 0) turns.push(turn.value, turn.key + next.tokens / flow.weight, flow.number);
  }
  return order;
}

/** Tokens that go before one more of this class and tenant, behind all that the tenant has waiting; without a sort. */
export function tokensBefore<T extends Waiter>(share: ModelShare<T>, className: string, tenant: string): number {
  const own = share.classOf(className);
  let tokens = 0;
  for (const other of share.classes())
    if (other !== own && other.waiting > 0 && share.classBefore(other, own)) tokens += other.waitingTokens;
  const flow = own.flows.known(tenant);
  const weight = flow?.weight ?? own.flows.weightOf(tenant);
  // While its own are served, flows that wait all the time get as much for their weight.
  const waiting = flow?.waiting ?? 0;
  const others = own.flows.waitingWeight - (waiting > 0 ? weight : 0);
  const typical = own.waiting > 0 ? own.waitingTokens / own.waiting : 0;
  const ownTokens = flow?.waitingTokens ?? 0;
  const shared = ownTokens + ((ownTokens + typical) * others) / weight;
  return tokens + Math.min(own.waitingTokens, shared);
}
