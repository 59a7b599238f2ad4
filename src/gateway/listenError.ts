/** A listener's address that cannot be had. The message names the key and the flag that give another. */
export class ListenError extends Error {
  override readonly name = "ListenError";

  constructor(listener: "listen" | "admin", cause: unknown) {
    super(describe(listener, cause as NodeJS.ErrnoException & { address?: string; port?: number }), { cause });
  }
}

function describe(
  listener: "listen" | "admin",
  { code, address = "", port, message }: NodeJS.ErrnoException & { address?: string; port?: number },
): string {
  const who = listener === "listen" ? "clients" : "the admin listener";
  const flag = listener === "listen" ? "" : "admin-";
  const another = (what: "host" | "port") =>
    `${listener}.${what} in the configuration, or --${flag}${what} without one`;
  if (code === "EADDRINUSE")
    return `Port ${port} on ${address}, for ${who}, is taken. Set ${another("port")}; 0 takes any.`;
  if (code === "EACCES")
    return `Listening on ${address}:${port}, for ${who}, is not permitted. Set ${another("port")}.`;
  if (code === "EADDRNOTAVAIL") return `${address}, for ${who}, is no address of this machine. Set ${another("host")}.`;
  return `Listening for ${who} failed: ${message}`;
}
