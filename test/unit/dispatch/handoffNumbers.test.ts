import assert from "node:assert/strict";
import { test } from "node:test";
import { HandoffNumbers } from "#src/dispatch/pair/handoffNumbers.ts";

test("rooms are unique whole numbers below 2^63, exact where a JavaScript number is not", () => {
  const numbers = new HandoffNumbers();
  const rooms = Array.from({ length: 1000 }, () => numbers.next("id", 1).room);
  assert.equal(new Set(rooms).size, rooms.length);
  assert.ok(rooms.every((room) => room >= 0n && room < 2n ** 63n));
  assert.notEqual(new HandoffNumbers().next("id", 1).room, new HandoffNumbers().next("id", 1).room);
});

test("both legs have the request's id; those of a later attempt have another, as long", () => {
  const numbers = new HandoffNumbers();
  const id = "00000000-0000-4000-8000-000000000000";
  assert.equal(numbers.next(id, 1).requestId, id);
  const second = numbers.next(id, 2).requestId;
  assert.notEqual(second, id);
  assert.equal(second.length, id.length);
});
