import assert from "node:assert/strict";
import { test } from "node:test";
import { configFrom } from "#src/config/loadConfig.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { ANONYMOUS } from "#src/gateway/clients.ts";
import type { Client } from "#src/gateway/clients.ts";
import type { HttpHead } from "#src/gateway/http/httpRequest.ts";
import { ModelNames } from "#src/gateway/modelNames.ts";
import { requestedService, senderOf } from "#src/gateway/requestedService.ts";
import type { RequestedService } from "#src/gateway/requestedService.ts";
import { ClassTable } from "#src/scheduler/classes.ts";

const tools = {
  names: new ModelNames(configFrom({ models: { llama: { class: "batch" }, poet: { class: "interactive" } } }).models),
  classes: new ClassTable(),
  totalMs: 60_000,
};
const trusted: Client = { ...ANONYMOUS, name: "acme" };
const plain: Client = { ...trusted, mayChooseClass: false, mayNameTenants: false };

function headOf(headers: Record<string, string>): HttpHead {
  return {
    method: "POST",
    target: "/v1/chat/completions",
    headers: [],
    header: (name: string) => headers[name] ?? null,
    arrivedMs: 1_000,
    bodyBytes: 2,
    remoteAddress: "127.0.0.1",
  };
}

function service(
  headers: Record<string, string>,
  client: Client,
  servedName = "llama",
  model = "llama",
): RequestedService {
  return requestedService(headOf(headers), client, { servedName, model }, tools);
}

function refusal(headers: Record<string, string>, client: Client): string {
  try {
    service(headers, client);
  } catch (caught) {
    assert.ok(caught instanceof RouterError);
    return `${caught.httpStatus} ${caught.code} ${caught.param}`;
  }
  return "not refused";
}

test("the class is the header's if the key may choose, else the key's, else the model's, else standard", () => {
  assert.equal(
    service({ "x-kvasir-class": "interactive" }, { ...trusted, className: "batch" }).className,
    "interactive",
  );
  assert.equal(service({}, { ...plain, className: "interactive" }).className, "interactive");
  assert.equal(service({}, plain).className, "batch");
  assert.equal(service({}, plain, "poet").className, "interactive", "an adapter's own settings come first");
  assert.equal(service({}, plain, "other", "other").className, "standard");
});

test("what a key may not choose, and what is not there, is refused and not ignored", () => {
  assert.equal(refusal({ "x-kvasir-class": "batch" }, plain), "403 forbidden x-kvasir-class");
  assert.equal(refusal({ "x-kvasir-class": "gold" }, trusted), "400 invalid_request x-kvasir-class");
  assert.equal(refusal({ "x-kvasir-tenant": "a" }, plain), "403 forbidden x-kvasir-tenant");
  for (const name of ["", "a/b", "a b", "x".repeat(129)])
    assert.equal(refusal({ "x-kvasir-tenant": name }, trusted), "400 invalid_request x-kvasir-tenant");
});

test("a tenant's name stands behind its key's", () => {
  assert.equal(service({}, trusted).tenant, "acme");
  assert.equal(service({ "x-kvasir-tenant": "shop-7" }, trusted).tenant, "acme/shop-7");
});

test("the time that the client waits ends the request, if it is the shorter", () => {
  assert.equal(service({ "x-kvasir-timeout-ms": "5000" }, plain).deadlineMs, 6_000);
  assert.equal(service({ "x-kvasir-timeout-ms": "90000" }, plain).deadlineMs, 61_000);
  assert.equal(service({}, plain).deadlineMs, 61_000);
  for (const asked of ["0", "-1", "1.5", "5s", "", "1e3", "9999999999"])
    assert.equal(refusal({ "x-kvasir-timeout-ms": asked }, plain), "400 invalid_request x-kvasir-timeout-ms");
});

test("before the body is read, the head tells class and tenant as far as the key allows", () => {
  const asked = { "x-kvasir-class": "batch", "x-kvasir-tenant": "blue" };
  const sender = (headers: Record<string, string>, client: Client) => senderOf(headOf(headers), client, tools.classes);
  assert.deepEqual(sender(asked, trusted), { className: "batch", tenant: "acme/blue" });
  assert.deepEqual(sender(asked, plain), { className: "standard", tenant: "acme" });
  assert.deepEqual(sender({}, { ...plain, className: "interactive" }), { className: "interactive", tenant: "acme" });
  assert.deepEqual(sender({ "x-kvasir-class": "nosuch" }, trusted), { className: "standard", tenant: "acme" });
});
