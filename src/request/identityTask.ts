import type { ErrorCode, RouterErrorOptions } from "#src/errors/routerError.ts";
import type { IdentifyOptions } from "./identify.ts";
import type { Identity } from "./identity.ts";
import type { RequestLimits } from "./readRequest.ts";
import type { RequestShape } from "./requestShape.ts";

/** What `readRequest` takes beside the body. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly contentType: string;
  readonly limits: RequestLimits;
}

/** One piece of work for an identity thread. */
export interface ThreadTask {
  readonly head: RequestHead;
  /** The body's bytes, shared: the thread only reads them. */
  readonly bytes: SharedArrayBuffer;
  /** Null: only read the request. */
  readonly options: IdentifyOptions | null;
}

export type ThreadAnswer =
  /** Its prompt is left out. */
  | { readonly kind: "shape"; readonly shape: RequestShape }
  | { readonly kind: "identity"; readonly identity: Identity }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      readonly options: RouterErrorOptions;
    };
