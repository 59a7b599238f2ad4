import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Three letters each: what answers of the emulator are made of. */
const WORDS = "the and for can see run add map use any all one two few new old big low top".split(" ");

/** ChatML, in the way that templates of Qwen are written. */
const TEMPLATE =
  "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}" +
  "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
  "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/**
 * Writes a tokenizer as models bring them, but small: bytes, common words with the blank before them, marks of ChatML.
 * Returns the folder.
 */
export async function writeSmallTokenizer(folder: string, { hasTemplate = true } = {}): Promise<string> {
  await mkdir(folder, { recursive: true });
  const merges = new Set<string>();
  const pieces = new Set(byteLetters());
  for (const word of WORDS) {
    let piece = "Ġ";
    for (const letter of word) {
      merges.add(`${piece} ${letter}`);
      pieces.add((piece += letter));
    }
  }
  const vocab = Object.fromEntries([...pieces].map((piece, id) => [piece, id]));
  const special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map((content, at) => ({
    id: pieces.size + at,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const split =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special,
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [{ type: "Split", pattern: { Regex: split }, behavior: "Isolated", invert: false }, bytes],
    },
    post_processor: bytes,
    decoder: bytes,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges: [...merges],
    },
  };
  const config = {
    tokenizer_class: "Qwen2Tokenizer",
    bos_token: null,
    eos_token: "<|im_end|>",
    chat_template: hasTemplate ? TEMPLATE : null,
  };
  await writeFile(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  await writeFile(join(folder, "tokenizer_config.json"), JSON.stringify(config));
  return folder;
}

/** The 256 letters that byte-level tokenizers write bytes as: printable ones as themselves, the others from U+0100 on. */
function byteLetters(): string[] {
  const isPrintable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : 0x100 + others++));
}
