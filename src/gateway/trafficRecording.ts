import { randomBytes } from "node:crypto";
import { ConfigError } from "#src/config/configError.ts";
import type { Config } from "#src/config/schema.ts";
import { processClock } from "#src/determinism/clock.ts";
import { keyFileOf, readOrMakeKey } from "#src/recording/format/keyFile.ts";
import type { HashKey } from "#src/recording/format/hashKey.ts";
import { RecordingError } from "#src/recording/format/recordingError.ts";
import { Recorder } from "#src/recording/write/recorder.ts";
import { RecordingFile } from "#src/recording/write/recordingFile.ts";
import { decisionConfig, type DecisionConfig } from "./decisionConfig.ts";

export interface TrafficRecordingOptions {
  readonly seed: number;
  readonly version: string;
  readonly onError: (cause: Error) => void;
}

/** The recording that a configuration asks for: the recorder, and the files behind it. */
export class TrafficRecording {
  readonly recorder: Recorder;
  readonly #file: RecordingFile;
  readonly #key: HashKey;

  /** Null: none is asked for. Throws ConfigError where there is no key to be had. */
  static of(config: Config, options: TrafficRecordingOptions): TrafficRecording | null {
    const { file } = config.record;
    return file === undefined ? null : new TrafficRecording(config, file, options);
  }

  private constructor(config: Config, path: string, { seed, version, onError }: TrafficRecordingOptions) {
    const { keyFile, maxBytes, maxFiles, bufferBytes } = config.record;
    this.#file = new RecordingFile({ path, maxBytes, maxFiles, bufferBytes, onError });
    const key = (this.#key = keyOf(keyFile ?? keyFileOf(path)));
    this.recorder = new Recorder({
      sink: this.#file,
      key,
      header: { run: randomBytes(8).toString("hex"), version, seed, maxReplicas: config.discovery.maxEngines },
      settings: recordedForm(config, key),
      nowMs: () => processClock.nowMs(),
      wallMs: () => Date.now(),
    });
  }

  get counts(): { readonly writtenBytes: number; readonly droppedRecords: number } {
    return { writtenBytes: this.#file.writtenBytes, droppedRecords: this.recorder.dropped };
  }

  configure(config: Config): void {
    this.recorder.configure(recordedForm(config, this.#key));
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Keys go by the pseudonyms that their tenants have in the recording. */
function recordedForm(config: Config, key: HashKey): DecisionConfig {
  const settings = decisionConfig(config);
  const weights = Object.entries(settings.tenantWeights).map(([name, weight]) => [key.tenant(name), weight]);
  return { ...settings, tenantWeights: Object.fromEntries(weights) };
}

function keyOf(path: string): ReturnType<typeof readOrMakeKey> {
  try {
    return readOrMakeKey(path);
  } catch (caught) {
    if (!(caught instanceof RecordingError)) throw caught;
    throw new ConfigError([`record: ${caught.message}`], caught);
  }
}
