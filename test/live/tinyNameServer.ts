import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";

const TYPES = { 1: "A", 28: "AAAA", 33: "SRV" } as const;

export interface Zone {
  A?: string[];
  AAAA?: string[];
  SRV?: { target: string; port: number }[];
  /** Answers SERVFAIL to everything. */
  broken?: boolean;
}

/** A name server on loopback that knows one name, whose zone a test changes in place. */
export async function tinyNameServer(zone: Zone): Promise<{ address: string; close: () => void }> {
  const socket = createSocket("udp4");
  socket.on("message", (query: Buffer, from: RemoteInfo) => socket.send(reply(query, zone), from.port, from.address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}

/** RFC 1035 §4.1: header, the question repeated, then answers whose name points back to the question. */
function reply(query: Buffer, zone: Zone): Buffer {
  const questionEnd = query.indexOf(0, 12) + 5;
  const type = TYPES[query.readUInt16BE(questionEnd - 4) as keyof typeof TYPES];
  const records = zone.broken === true ? [] : recordsOf(zone, type);
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (zone.broken === true ? 2 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  const answers = records.map((data) => {
    const fixed = Buffer.alloc(12);
    fixed.writeUInt16BE(0xc00c, 0);
    query.copy(fixed, 2, questionEnd - 4, questionEnd);
    fixed.writeUInt32BE(1, 6);
    fixed.writeUInt16BE(data.length, 10);
    return Buffer.concat([fixed, data]);
  });
  return Buffer.concat([header, query.subarray(12, questionEnd), ...answers]);
}

function recordsOf(zone: Zone, type: "A" | "AAAA" | "SRV" | undefined): Buffer[] {
  if (type === "A") return (zone.A ?? []).map((address) => Buffer.from(address.split(".").map(Number)));
  if (type === "AAAA") return (zone.AAAA ?? []).map(v6Bytes);
  return type === "SRV" ? (zone.SRV ?? []).map(({ target, port }) => serviceBytes(target, port)) : [];
}

function serviceBytes(target: string, port: number): Buffer {
  const fixed = Buffer.alloc(6);
  fixed.writeUInt16BE(port, 4);
  const labels = target.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([fixed, ...labels, Buffer.from([0])]);
}

function v6Bytes(address: string): Buffer {
  const [head = "", tail = ""] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: missing }, () => "0"), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}
