import { digestChain, mainChain, type ChainHasher } from "./chainHash.ts";
import { EMPTY_HASHES, type Identity, type UnhashableReason } from "./identity.ts";
import { DIGEST_BEGIN, DIGEST_BYTES, DIGEST_END, MARK, NOTHING, type Prompt, type PromptPlan } from "./prompt.ts";
import type { RequestShape } from "./requestShape.ts";
import { chainRoot, keyedParent, tokenChain } from "./tokens/tokenChain.ts";

/**
 * Bytes of canonical text per block, about 128 tokens of English. Half a block of a shared prefix is lost on average,
 * and each block costs an entry in the index. Hashing 220 KB in chunks of 512 was measured at 32 µs; chunks of 1024 save
 * about 6 of them, chunks of 256 cost about 7 more and twice the entries.
 */
export const CHUNK_BYTES = 512;
/** Tokens per block where the prompt is token ids and nothing is known of the engines' blocks. */
export const BLOCK_TOKENS = 64;
/** Whisper's window of 30 s, the least that an engine computes for a recording. */
const AUDIO_TOKENS = 1500;

export interface IdentifyOptions {
  /** How many bytes of canonical text this model makes one token of (learned; about 4 for English). */
  readonly bytesPerToken: number;
  readonly adapter: string | null;
  /** Keeps tenants apart that must not share cached blocks; null shares. */
  readonly salt: string | null;
  /** Of the blocks by which the pool's engines share prompts, where it is known. */
  readonly blockTokens?: number | null;
}

/**
 * Hashes a prompt in chained blocks. Text is hashed as the body writes it, escapes included: a client that writes "é"
 * in two ways has two identities, which costs a hit and never invents one.
 *
 * @param body the bytes that `shape` was read from
 */
export function identify(shape: RequestShape, body: Buffer, options: IdentifyOptions): Identity {
  const { prompt } = shape;
  if (prompt.malformed) return unhashable("malformed_prompt", shape, body.length, options);
  if (prompt.text.length > 0) return identifyText(shape, prompt, body, options);
  if (prompt.tokens.length > 0) return identifyTokens(shape, prompt, body, options);
  const silent = shape.api === "other" || shape.api === "audio";
  return unhashable(silent ? "unsupported_api" : "no_prompt", shape, body.length, options);
}

/** For requests without a chain: what they weigh is guessed from the size of their body. */
export function unhashable(
  reason: UnhashableReason,
  shape: RequestShape,
  bodyBytes: number,
  options: Pick<IdentifyOptions, "bytesPerToken">,
): Identity {
  const promptTokens = shape.api === "audio" ? AUDIO_TOKENS : Math.ceil(bodyBytes / options.bytesPerToken);
  return {
    hashes: EMPTY_HASHES,
    blockTokens: CHUNK_BYTES / options.bytesPerToken,
    promptTokens,
    promptBytes: bodyBytes,
    approximate: true,
    unhashable: reason,
  };
}

function identifyText(shape: RequestShape, prompt: Prompt, body: Buffer, options: IdentifyOptions): Identity {
  let promptBytes = 0;
  for (const plan of prompt.text) promptBytes += plannedBytes(plan);
  const hashes = new BigUint64Array(Math.floor(promptBytes / CHUNK_BYTES));
  if (hashes.length > 0) {
    seedRoot(shape, body, options);
    mainChain.begin(CHUNK_BYTES, hashes, digestChain);
    for (const plan of prompt.text) addPlan(mainChain, plan, body);
    mainChain.end();
  }
  return {
    hashes,
    blockTokens: CHUNK_BYTES / options.bytesPerToken,
    promptTokens: Math.ceil(promptBytes / options.bytesPerToken),
    promptBytes,
    approximate: true,
    unhashable: null,
  };
}

function identifyTokens(shape: RequestShape, prompt: Prompt, body: Buffer, options: IdentifyOptions): Identity {
  const [first = new Uint32Array(0), ...more] = prompt.tokens;
  const tokenIds = more.length === 0 ? first : joined(prompt.tokens);
  const blockTokens = options.blockTokens ?? BLOCK_TOKENS;
  return {
    hashes: tokenChain(tokenRoot(shape, body, options, blockTokens), tokenIds, blockTokens),
    blockTokens,
    promptTokens: tokenIds.length,
    promptBytes: tokenIds.byteLength,
    approximate: false,
    unhashable: null,
  };
}

/** As the engines' events have it, unless the request depends on something that no event names in this way. */
function tokenRoot(shape: RequestShape, body: Buffer, options: IdentifyOptions, blockTokens: number): bigint {
  const root = chainRoot(options.adapter, shape.cacheSalt, blockTokens);
  if (options.salt === null && shape.prompt.root.length === 0) return root;
  seedRoot(shape, body, options);
  return keyedParent(root, digestChain.digest().toString(16));
}

function joined(arrays: readonly Uint32Array[]): Uint32Array {
  const whole = new Uint32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    whole.set(array, at);
    at += array.length;
  }
  return whole;
}

/** Leaves in the digest chain what no two prompts with different adapter, salt or root fields may share. */
function seedRoot(shape: RequestShape, body: Buffer, options: IdentifyOptions): void {
  digestChain.begin(CHUNK_BYTES, EMPTY_HASHES, null);
  let bytes = addName(options.adapter) + addName(options.salt) + addName(shape.cacheSalt);
  for (const plan of shape.prompt.root) bytes += addRootPlan(plan, body);
  digestChain.endDigest(bytes);
}

/** A name with its length before it, so that no two lists of names look alike. Null is unlike the empty name. */
function addName(name: string | null): number {
  if (name === null) {
    digestChain.addByte(0xff);
    return 1;
  }
  const bytes = Buffer.from(name, "utf8");
  const head = Buffer.from(`${bytes.length}:`, "latin1");
  digestChain.add(head, 0, head.length);
  digestChain.add(bytes, 0, bytes.length);
  return head.length + bytes.length;
}

/** Root plans are inside one digest already, so their own digests need no other. */
function addRootPlan(plan: PromptPlan, body: Buffer): number {
  let bytes = 0;
  for (let i = 0; i < plan.length; i += 2) {
    const step = plan[i]!;
    const argument = plan[i + 1]!;
    if (step >= 0) {
      digestChain.add(body, step, argument);
      bytes += argument - step;
    } else if (step === MARK) {
      digestChain.addByte(argument);
      bytes++;
    }
  }
  return bytes;
}

function addPlan(chain: ChainHasher, plan: PromptPlan, body: Buffer): void {
  let depth = 0;
  let digested = 0;
  for (let i = 0; i < plan.length; i += 2) {
    const step = plan[i]!;
    const argument = plan[i + 1]!;
    const target = depth === 0 ? chain : digestChain;
    if (step >= 0) {
      target.add(body, step, argument);
      digested += argument - step;
    } else if (step === MARK) {
      target.addByte(argument);
      digested++;
    } else if (step === DIGEST_BEGIN) {
      if (depth++ > 0) continue;
      digestChain.begin(CHUNK_BYTES, EMPTY_HASHES, null);
      digested = 0;
    } else if (step === DIGEST_END) {
      if (--depth > 0) continue;
      digestChain.endDigest(digested);
      chain.addDigestOf(digestChain);
    }
  }
}

/** Length of the canonical text that a plan makes. */
function plannedBytes(plan: PromptPlan): number {
  let bytes = 0;
  let depth = 0;
  for (let i = 0; i < plan.length; i += 2) {
    const step = plan[i]!;
    if (step === DIGEST_BEGIN) depth++;
    else if (step === DIGEST_END) {
      depth--;
      if (depth === 0) bytes += DIGEST_BYTES;
    } else if (depth > 0 || step === NOTHING) continue;
    else bytes += step >= 0 ? plan[i + 1]! - step : 1;
  }
  return bytes;
}
