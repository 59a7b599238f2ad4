import { Socket } from "node:net";
import type { SocketConstructorOpts } from "node:net";

/** Told of each read. The bytes are in `buffer[0, length)` and stay there only until it returns. */
export type OnRead = (buffer: Buffer, length: number) => void;

/** Reading is synchronous, so one buffer serves every connection. */
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/**
 * Makes an accepted connection read into one shared buffer, as `net.connect` can by its `onread` option. Accepted
 * sockets have no such option: node allocates 64 KiB for each read of each, which at large bodies costs a third of the
 * router's time, in memory management and garbage collection. So a second socket with `onread` is put on the accepted
 * one's handle. Where that cannot be (TLS decrypts into buffers of its own), the socket itself is used, same semantics.
 *
 * The socket must have been accepted with `pauseOnConnect`. Returns the one to use from now on.
 */
export function readShared(accepted: Socket, onRead: OnRead): Socket {
  const holder = accepted as unknown as { _handle: object | null };
  const handle = holder._handle;
  if (handle === null || handle === undefined || "encrypted" in accepted) {
    accepted.on("data", (bytes: Buffer) => onRead(bytes, bytes.length));
    return accepted;
  }
  holder._handle = null;
  const callback = (length: number): boolean => {
    onRead(readBuffer, length);
    return true;
  };
  // `handle` is an option that the documentation does not name; node's own server passes it.
  const options: Omit<SocketConstructorOpts, "handle"> & { handle: object } = {
    handle,
    readable: true,
    writable: true,
    onread: { buffer: readBuffer, callback },
  };
  const socket = new Socket(options as SocketConstructorOpts);
  // The server counts the socket that it accepted.
  socket.once("close", () => accepted.destroy());
  return socket;
}
