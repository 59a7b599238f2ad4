/** Hashes are kept, and called by number, in links of so many: a table of single ones would cost a cache miss for each. */
export const LINK_HASHES = 8;
/** Links known at a time; with the next chain past it all are forgotten, by writer and reader alike. */
export const MAX_LINKS = 2 ** 17;

/** Whether all links are to be forgotten before a chain of so many hashes is written or read. */
export function startsAnew(knownLinks: number, hashes: number): boolean {
  return knownLinks > 0 && knownLinks + Math.floor(hashes / LINK_HASHES) > MAX_LINKS;
}
