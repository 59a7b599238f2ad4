import { textSeed } from "../tokens/blockHashes.ts";
import type { Exchange } from "./exchange.ts";
import { readMultipart } from "./multipart.ts";
import { readSampling } from "./samplingFields.ts";
import { invalidBody } from "./vllmError.ts";

/** What a second of speech is taken to be: 16 kHz, 16 bit; some three words, four tokens. */
const BYTES_PER_SECOND = 32_000;
const TOKENS_PER_SECOND = 4;

/** `POST /v1/audio/transcriptions`: a form with `file`, `model` and options in any order. */
export function answerTranscription(exchange: Exchange): void {
  const { tokenizer } = exchange.context;
  const parts = readMultipart(exchange.request.headers["content-type"], exchange.body);
  const file = parts.get("file");
  if (file === undefined)
    throw invalidBody("{'type': 'missing', 'loc': 'body.file', 'msg': 'Field required'}", "body.file");
  const fields = Object.fromEntries([...parts].map(([name, value]) => [name, value.toString("utf8")]));
  const adapter = exchange.adapterOf({ model: fields["model"] });
  const model = adapter ?? exchange.context.options.model;
  const seconds = Math.max(1, Math.ceil(file.length / BYTES_PER_SECOND));
  const text = tokenizer.answers.text(textSeed(file.toString("latin1")), seconds * TOKENS_PER_SECOND);
  const prompt = tokenizer.encode(file.toString("base64").slice(0, seconds * 200));
  exchange.generate(
    { ...readSampling({}, { maxTokens: seconds * TOKENS_PER_SECOND, adapter }), prompts: [prompt] },
    model,
    {
      token: () => {},
      done: () => {
        if (fields["response_format"] === "text") exchange.answer(200, "text/plain; charset=utf-8", `${text}\n`);
        else exchange.answerJson({ text, model, usage: { type: "duration", seconds } });
      },
    },
  );
}
