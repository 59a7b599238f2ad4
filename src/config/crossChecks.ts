import { notAllowed, type Problem } from "./explainIssue.ts";
import { isLoopback } from "./loopback.ts";
import { PREDEFINED_CLASS_NAMES, PREDEFINED_GUARANTEED_SHARE } from "./names.ts";
import type { Config } from "./schema.ts";

type Path = readonly (string | number)[];
type Refuse = (path: Path, input: unknown, allowed: string) => void;

/** What no single key can check: values that only another key forbids. */
export function crossChecks(config: Config): readonly Problem[] {
  const problems: Problem[] = [];
  const refuse: Refuse = (path, input, allowed) => problems.push(notAllowed(path, input, allowed));
  adminToken(config, refuse);
  classNames(config, refuse);
  guarantees(config, refuse);
  modelNames(config, refuse);
  unique(config.keys, "keys", "name", refuse);
  unique(config.keys, "keys", "hash", refuse);
  unique(config.engines, "engines", "url", refuse);
  unique(config.engines, "engines", "name", refuse);
  return problems;
}

function adminToken({ admin }: Config, refuse: Refuse): void {
  if (!admin.enabled || admin.token !== undefined || isLoopback(admin.host)) return;
  refuse(
    ["admin", "host"],
    admin.host,
    "a loopback address, unless admin.token is set (without a file: KVASIR_ADMIN_TOKEN)",
  );
}

function classNames(config: Config, refuse: Refuse): void {
  const known = new Set([...PREDEFINED_CLASS_NAMES, ...Object.keys(config.classes)]);
  const check = (path: Path, name: string | undefined) => {
    if (name !== undefined && !known.has(name)) refuse(path, name, `one of ${[...known].join(", ")}`);
  };
  for (const [model, settings] of Object.entries(config.models)) check(["models", model, "class"], settings.class);
  config.keys.forEach((key, at) => check(["keys", at, "class"], key.class));
}

function guarantees({ classes }: Config, refuse: Refuse): void {
  const kept = PREDEFINED_CLASS_NAMES.filter((name) => classes[name] === undefined);
  let sum = kept.length * PREDEFINED_GUARANTEED_SHARE;
  for (const [name, { guaranteedShare }] of Object.entries(classes)) {
    sum += guaranteedShare;
    if (sum > 1) refuse(["classes", name, "guaranteedShare"], guaranteedShare, "1 at most for all classes together");
  }
}

function modelNames({ models }: Config, refuse: Refuse): void {
  const owner = new Map(Object.keys(models).map((name) => [name, name]));
  for (const [model, { aliases }] of Object.entries(models)) {
    aliases.forEach((alias, at) => {
      const taken = owner.get(alias);
      if (taken === undefined) owner.set(alias, model);
      else refuse(["models", model, "aliases", at], alias, `a name that models.${taken} does not have already`);
    });
  }
}

function unique<K extends string>(
  entries: readonly Readonly<Partial<Record<K, string | undefined>>>[],
  list: string,
  key: K,
  refuse: Refuse,
): void {
  const first = new Map<string, number>();
  entries.forEach((entry, at) => {
    const value = entry[key];
    if (value === undefined) return;
    const earlier = first.get(value);
    if (earlier === undefined) first.set(value, at);
    else refuse([list, at, key], value, `a value that ${list}.${earlier} does not have already`);
  });
}
