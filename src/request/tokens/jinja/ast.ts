import type { Value } from "./values.ts";

/** Names that are assigned to: one, several (unpacked), or an attribute of a namespace. */
export type Target =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "tuple"; readonly items: readonly Target[] }
  | { readonly kind: "attribute"; readonly object: string; readonly name: string };

export interface Arguments {
  readonly positional: readonly Expression[];
  readonly named: readonly { readonly name: string; readonly value: Expression }[];
  /** `*args`, `**kwargs`. */
  readonly spread: Expression | null;
  readonly spreadNamed: Expression | null;
}

export type CompareOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";
export type MathOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";

export type Expression =
  | { readonly kind: "constant"; readonly value: Value }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "list" | "tuple"; readonly items: readonly Expression[] }
  | { readonly kind: "dict"; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "attribute"; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly object: Expression; readonly key: Expression }
  | {
      readonly kind: "slice";
      readonly start: Expression | null;
      readonly stop: Expression | null;
      readonly step: Expression | null;
    }
  | { readonly kind: "call"; readonly callee: Expression; readonly args: Arguments }
  /** `operand` is null only inside a filter block, where it is the block's text. */
  | { readonly kind: "filter"; readonly operand: Expression | null; readonly name: string; readonly args: Arguments }
  | { readonly kind: "test"; readonly operand: Expression; readonly name: string; readonly args: Arguments }
  | { readonly kind: "not" | "negative" | "positive"; readonly operand: Expression }
  | { readonly kind: "and" | "or"; readonly left: Expression; readonly right: Expression }
  | {
      readonly kind: "math";
      readonly operator: MathOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: "concat"; readonly items: readonly Expression[] }
  | {
      readonly kind: "compare";
      readonly first: Expression;
      readonly rest: readonly { readonly operator: CompareOperator; readonly value: Expression }[];
    }
  | {
      readonly kind: "condition";
      readonly test: Expression;
      readonly value: Expression;
      readonly otherwise: Expression | null;
    };

export interface Parameter {
  readonly name: string;
  readonly value: Expression | null;
}

export type Statement =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "print"; readonly value: Expression }
  | { readonly kind: "set"; readonly target: Target; readonly value: Expression }
  | {
      readonly kind: "setBlock";
      readonly target: Target;
      readonly filter: Expression | null;
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "for";
      readonly target: Target;
      readonly iterable: Expression;
      readonly test: Expression | null;
      readonly recursive: boolean;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "if";
      readonly branches: readonly { readonly test: Expression; readonly body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "macro";
      readonly name: string;
      readonly parameters: readonly Parameter[];
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "callBlock";
      readonly call: Expression & { readonly kind: "call" };
      readonly parameters: readonly Parameter[];
      readonly body: readonly Statement[];
    }
  | { readonly kind: "filterBlock"; readonly filter: Expression; readonly body: readonly Statement[] }
  | {
      readonly kind: "with";
      readonly bindings: readonly { readonly target: Target; readonly value: Expression }[];
      readonly body: readonly Statement[];
    }
  /** The tag by which training marks what the model said; it changes nothing. */
  | { readonly kind: "generation"; readonly body: readonly Statement[] }
  | { readonly kind: "break" | "continue" };
