import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Template } from "#src/request/tokens/jinja/template.ts";
import { TemplateError } from "#src/request/tokens/jinja/templateError.ts";
import { NOW, render } from "./jinjaHelp.ts";
import { recorded } from "./recordedFolder.ts";

interface Recorded {
  readonly variables: Readonly<Record<string, string>>;
  /** Null: Jinja raises. */
  readonly cases: readonly (readonly [template: string, printed: string | null])[];
}

function failureOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TemplateError) return error.failure;
    throw error;
  }
  return "none";
}

describe("templates", () => {
  test("print what Jinja prints, and fail where it raises", () => {
    const { variables, cases } = recorded("jinja2-3.1.6.json") as Recorded;
    for (const [template, printed] of cases) {
      if (printed === null)
        assert.equal(
          failureOf(() => render(template, variables)),
          "failed",
          template,
        );
      else assert.equal(render(template, variables), printed, template);
    }
  });

  test("strip like Python, which takes other characters for white space than JavaScript", () => {
    const text = JSON.stringify("\u001c\u0085\ufeff x \ufeff\u0085\u001f");
    assert.equal(render("{{ x.strip() }}", { x: text }), "\ufeff x \ufeff");
    assert.equal(render("{{ x | trim }}|{{ x.split() | length }}", { x: text }), "\ufeff x \ufeff|3");
    assert.equal(render("{{ '..a.'.strip('.') }}{{ '\n b\n'.lstrip('\n') }}{{ 'xyx'.rstrip('xy') }}"), "a b\n");
  });

  test("count in characters, not in halves of surrogate pairs", () => {
    assert.equal(
      render("{{ '👍🏽x'|length }} {{ '👍🏽x'[1] == '🏽' }} {{ '👍🏽x'[::-1] }} {{ 'a👍b'.find('b') }}"),
      "3 True x🏽👍 2",
    );
  });

  test("write numbers, texts and containers as Python does", () => {
    const json = '{"a": [1.0, 1e16, 1e-5, 0.1, -0.0, 12345678901234567890, true, null, "it\'s \\"q\\" \\n\\u00a0é"]}';
    const printed = `{'a': [1.0, 1e+16, 1e-05, 0.1, -0.0, 12345678901234567890, True, None, 'it\\'s "q" \\n\\xa0é']}`;
    assert.equal(render("{{ x }}", { x: json }), printed);
    assert.equal(
      render("{{ x | tojson }}", { x: json }),
      '{"a": [1.0, 1e+16, 1e-05, 0.1, -0.0, 12345678901234567890, true, null, "it\'s \\"q\\" \\n\u00a0é"]}',
    );
    assert.equal(
      render("{{ x | tojson(ensure_ascii=true, indent=1, sort_keys=true) }}", { x: '{"b": [], "a": "é👍"}' }),
      '{\n "a": "\\u00e9\\ud83d\\udc4d",\n "b": []\n}',
    );
  });

  test("keep the members of objects in their order, numbers for names included", () => {
    assert.equal(render("{% for k in x %}{{ k }},{% endfor %}", { x: '{"b": 1, "10": 2, "2": 3, "b": 4}' }), "b,10,2,");
  });

  test("know the two functions and the tag that transformers adds", () => {
    assert.equal(
      render("{{ strftime_now('%d %b %Y, %A %-d %H:%M:%S %p %y %%') }}"),
      "07 Mar 2026, Saturday 7 14:05:09 PM 26 %",
    );
    assert.equal(render("a{% generation %}b{% endgeneration %}c"), "abc");
    assert.equal(
      failureOf(() => render("{{ raise_exception('no') }}")),
      "refused",
    );
  });

  test("refuse what is not built instead of guessing", () => {
    const unknown = [
      "{{ x | nosuchfilter }}",
      "{{ x is nosuchtest }}",
      "{% include 'file' %}",
      "{{ 'a'.zfill(3) }}",
      "{{ '%s' % 1 }}",
      "{% for a in [1] recursive %}{% endfor %}",
      "{{ strftime_now('%j') }}",
      "{{ range }}",
    ];
    for (const source of unknown)
      assert.equal(
        failureOf(() => render(source)),
        "unsupported",
        source,
      );
  });

  test("cannot change what they are given", () => {
    for (const source of ["{{ x.append(1) }}", "{{ x.clear() }}", "{% set x.y = 1 %}"])
      assert.equal(
        failureOf(() => render(source, { x: "[]" })),
        "failed",
        source,
      );
  });

  test("end: steps, output, depth and repetitions are bounded", () => {
    const nested = "{% for a in range(1000) %}{% for b in range(1000) %}{{ b }}{% endfor %}{% endfor %}";
    const render = (source: string, limits: object): string => new Template(source, limits).render(new Map(), NOW);
    assert.equal(
      failureOf(() => render(nested, { maxSteps: 10_000 })),
      "too_much",
    );
    assert.equal(
      failureOf(() => render(nested, { maxOutput: 1000 })),
      "too_much",
    );
    assert.equal(
      failureOf(() => render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {})),
      "too_much",
    );
    assert.equal(
      failureOf(() => render(`${"(".repeat(300)}1`, {})),
      "none",
      "text is text",
    );
    assert.equal(
      failureOf(() => render(`{{ ${"(".repeat(300)}1${")".repeat(300)} }}`, {})),
      "unsupported",
    );
    assert.equal(
      failureOf(() => render("{{ 'a' * 9999999 }}", {})),
      "unsupported",
    );
    assert.equal(
      failureOf(() => render("{{ range(9999999) }}", {})),
      "failed",
    );
  });
});
