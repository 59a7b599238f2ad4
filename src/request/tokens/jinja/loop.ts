import { failed, unsupported } from "./templateError.ts";
import { type AttributeObject, Callable, equal, type Value } from "./values.ts";

/** `loop` inside a for block. */
export class Loop implements AttributeObject {
  readonly kind = "loop";
  readonly #items: readonly Value[];
  #changedTo: readonly Value[] | null = null;
  at = 0;

  constructor(items: readonly Value[]) {
    this.#items = items;
  }

  attribute(name: string): Value {
    const { at } = this;
    const length = this.#items.length;
    switch (name) {
      case "index":
        return at + 1;
      case "index0":
        return at;
      case "revindex":
        return length - at;
      case "revindex0":
        return length - at - 1;
      case "first":
        return at === 0;
      case "last":
        return at === length - 1;
      case "length":
        return length;
      // Only recursive loops have other depths.
      case "depth":
        return 1;
      case "depth0":
        return 0;
      case "previtem":
        return at === 0 ? undefined : this.#items[at - 1];
      case "nextitem":
        return this.#items[at + 1];
      case "cycle":
        return new Callable(name, ({ positional }) => {
          if (positional.length === 0) throw failed("no items for cycling given");
          return positional[at % positional.length];
        });
      case "changed":
        return new Callable(name, ({ positional }) => {
          const before = this.#changedTo;
          this.#changedTo = positional;
          return before === null || !equal([...before], [...positional]);
        });
      default:
        if (name.startsWith("_")) throw unsupported(`loop.${name}`);
        return undefined;
    }
  }
}
