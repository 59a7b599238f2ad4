import type { Fleet } from "#src/fleet/fleet.ts";
import { BLOCK_TOKENS } from "#src/request/identify.ts";
import type { Identity } from "#src/request/identity.ts";
import type { IdentityWorkers } from "#src/request/identityWorkers.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import type { TokenIdentities } from "#src/request/tokenIdentities.ts";
import { isTokenized, type TokenizedApi } from "#src/request/tokens/promptTokens.ts";
import { TokenFallback, type TokenFallbackReason } from "#src/request/tokens/tokenFallback.ts";
import type { Metrics } from "#src/telemetry/metrics.ts";

export interface IdentityTools {
  readonly fleet: Fleet;
  readonly reader: IdentityWorkers;
  readonly tokens: TokenIdentities;
  readonly metrics: Metrics;
}

/**
 * Who a prompt is: by the engine's own tokens where the model's tokenizer is there and can tell them, else by its text.
 * Why not the former is counted.
 */
export function promptIdentity(
  shape: RequestShape,
  body: Buffer,
  { model, adapter }: { readonly model: string; readonly adapter: string | null },
  { fleet, reader, tokens, metrics }: IdentityTools,
): Identity | Promise<Identity> {
  const blockTokens = fleet.blockTokens(model);
  const byText = (): Identity | Promise<Identity> =>
    reader.identify(shape, body, {
      bytesPerToken: fleet.tokenDensity.bytesPerToken(model),
      adapter,
      salt: null,
      blockTokens,
    });
  // Token ids that the client sent itself need no tokenizer.
  if (!tokens.has(model) || shape.prompt.tokens.length > 0) return byText();
  if (!isTokenized(shape.api)) return counted(byText(), "unsupported_api", metrics);
  return byTokens(shape.api);

  async function byTokens(api: TokenizedApi): Promise<Identity> {
    try {
      return await tokens.identify(model, api, body, {
        adapter,
        salt: shape.cacheSalt,
        blockTokens: blockTokens ?? BLOCK_TOKENS,
      });
    } catch (caught) {
      const reason = caught instanceof TokenFallback ? caught.reason : "tokenizer_failed";
      return counted(byText(), reason, metrics);
    }
  }
}

function counted<Known extends Identity | Promise<Identity>>(
  known: Known,
  reason: TokenFallbackReason,
  metrics: Metrics,
): Known {
  const count = ({ approximate, unhashable }: Identity): void => {
    if (approximate && unhashable === null) metrics.textIdentities.with(reason).add();
  };
  if (known instanceof Promise) void known.then(count);
  else count(known);
  return known;
}
