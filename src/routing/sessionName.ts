import { hashText } from "./rendezvous.ts";

const DIGITS = 8;

/**
 * A session as the router knows it: the hash that policies go by, in hexadecimal digits. What the client calls it, often
 * a person's name, is not kept. Two routers give one session one name.
 */
export function sessionName(clientsName: string | null): string | null {
  return clientsName === null ? null : hashText(clientsName).toString(16).padStart(DIGITS, "0");
}

/** The number that a session's name writes. */
export function sessionNumber(name: string): number {
  const number = Number.parseInt(name, 16);
  return name.length === DIGITS && Number.isInteger(number) ? number : hashText(name);
}
