/** Where records go. Never waits: what finds no room is refused. */
export interface RecordSink {
  /** A file must begin before the next record: there is none, it is full, or its end was lost. */
  readonly needsFile: boolean;
  /** Whether it is worth trying again after a refusal. */
  readonly hasRoom: boolean;
  /** Records that were taken, and then lost on their way to the disk. */
  readonly lostRecords: number;
  /** False: refused. */
  append(record: Buffer): boolean;
  beginFile(header: Buffer): void;
}
