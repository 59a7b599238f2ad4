import assert from "node:assert/strict";
import { test } from "node:test";
import { contentFormatOf } from "#src/request/tokens/chat/contentFormat.ts";
import { Template } from "#src/request/tokens/jinja/template.ts";

const LOOP = "{% for message in messages %}BODY{% endfor %}";

/** Templates that loop over the parts of a content want them; others want one text. */
const OPENAI = [
  LOOP.replace("BODY", "{% for part in message.content %}{{ part }}{% endfor %}"),
  LOOP.replace("BODY", "{% for part in message['content'] %}{{ part }}{% endfor %}"),
  LOOP.replace("BODY", "{% set content = message.content %}{% for part in content %}{{ part }}{% endfor %}"),
  "{% set rest = messages[1:] %}{% for m in rest %}{% for part in m.content | list %}{{ part }}{% endfor %}{% endfor %}",
  "{% macro show(parts) %}{% for p in parts %}{{ p }}{% endfor %}{% endmacro %}" +
    LOOP.replace("BODY", "{{ show(message.content) }}"),
  "{% macro show(x, parts=1) %}{% for p in parts %}{{ p }}{% endfor %}{% endmacro %}" +
    LOOP.replace("BODY", "{{ show(1, parts=message.content) }}"),
];
const STRING = [
  LOOP.replace("BODY", "{{ message.content }}"),
  LOOP.replace("BODY", "{% for call in message.tool_calls %}{{ call }}{% endfor %}"),
  LOOP.replace("BODY", "{% set parts = message.content %}{% for p in parts %}{{ p }}{% endfor %}"),
  "{% macro show(content) %}{% for p in content %}{{ p }}{% endfor %}{% endmacro %}" +
    LOOP.replace("BODY", "{{ show(tools) }}"),
  "plain",
];

test("a template's wish for parts is found as vLLM finds it", () => {
  for (const source of OPENAI) assert.equal(contentFormatOf(new Template(source).statements), "openai", source);
  for (const source of STRING) assert.equal(contentFormatOf(new Template(source).statements), "string", source);
});
