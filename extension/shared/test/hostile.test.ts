import assert from "node:assert/strict";
import { test } from "node:test";

import { names, sample, shown } from "./dom.js";
import { render } from "../src/index.js";
import { activate } from "../src/notebook.js";

const MARKUP = '<img src=x onerror="alert(1)"></style><script>alert(1)</script>';
const TAGS = new Set("DIV STYLE DETAILS SUMMARY SECTION P UL LI SPAN STRONG EM Q CODE PRE INS DEL BUTTON MARK".split(" "));
const ATTRIBUTES = new Set(["class", "role", "aria-label", "aria-pressed", "open", "type", "title", "tabindex", "aria-expanded", "hidden"]);
const BOUND = 60_000;

/** Values that no field is made for. */
const WRONG: unknown[] = [
  null,
  undefined,
  0,
  -1,
  NaN,
  1e308,
  true,
  "",
  "text",
  MARKUP,
  [],
  [[]],
  [null],
  {},
  { length: 1e9 },
  [MARKUP, MARKUP],
  "x".repeat(1_000_000),
  "\u202e\x1b[31m\u200b\ud800owned\u2066",
  Array.from({ length: 100_000 }, () => "y"),
  Array.from({ length: 10_000 }, () => ({ title: "z".repeat(1_000) })),
];

function check(data: unknown): string {
  const root = render(data, { openPlace: () => undefined, answer: () => undefined, feedback: () => undefined });
  for (const each of [root, ...root.querySelectorAll("*")]) {
    assert.ok(TAGS.has(each.tagName), each.tagName);
    assert.deepEqual(
      [],
      [...each.getAttributeNames()].filter((name) => !ATTRIBUTES.has(name)),
    );
  }
  const text = shown(root);
  assert.ok(text.length > 0 && text.length < BOUND, String(text.length));
  assert.doesNotMatch(
    text,
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]|undefined|about NaN|\[object/,
  );
  return text;
}

/** The data with the value at one path replaced, for every path. */
function* replaced(data: unknown, value: unknown): Generator<unknown> {
  yield value;
  if (typeof data === "object" && data !== null) {
    for (const key of Object.keys(data)) {
      for (const inner of replaced((data as Record<string, unknown>)[key], value)) {
        yield Array.isArray(data)
          ? data.map((each, i) => (String(i) === key ? inner : each))
          : { ...data, [key]: inner };
      }
    }
  }
}

for (const value of WRONG) {
  test(`any field may be ${JSON.stringify(value)?.slice(0, 40)}`, () => {
    for (const name of ["settled", "short"]) {
      for (const data of replaced(sample(name), value)) {
        check(data);
      }
    }
  });
}

test("any field may be missing", () => {
  for (const name of names) {
    for (const key of Object.keys(sample(name))) {
      const data = sample(name);
      delete data[key];
      check(data);
    }
  }
});

test("what is no diagnosis is one clear line", () => {
  for (const data of [null, 7, "text", [], {}, { v: 1 }, { symptoms: [], advice: "none" }]) {
    const root = render(data);

    assert.match(shown(root), /^dtdebug: this output .*; %dtdebug shows the last one again\.$/);
    assert.equal(null, root.querySelector("details"));
  }
});

test("markup is text", () => {
  const root = render({ symptoms: [{ title: MARKUP, code: MARKUP, band: "likely" }], verdict: "settled" });

  assert.match(shown(root), /<img src=x/);
  assert.equal(null, root.querySelector("img, script"));
});

test("a newer form is shown as far as it is understood, and that is said", () => {
  const text = check({ ...sample("settled"), v: 99, verdict: "certain", future: { x: 1 } });

  assert.match(text, /form 99/);
  assert.match(text, /Training hangs/);
  assert.match(check({ v: 99 }), /newer dtdebug wrote this output \(form 99\)/);
});

test("inherited fields are not read and nothing is polluted", () => {
  const data = JSON.parse(
    '{"__proto__": {"symptoms": [{"title": "owned"}], "polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
  ) as unknown;

  assert.match(check(data), /no symptom/);
  assert.match(check(Object.create({ symptoms: [{ title: "owned" }] })), /no symptom/);
  assert.equal(undefined, ({} as Record<string, unknown>)["polluted"]);
});

test("an object that throws when it is read is one line", () => {
  const data = Object.defineProperty({}, "symptoms", {
    enumerable: true,
    get: () => {
      throw new Error("owned");
    },
  });

  assert.match(shown(render(data)), /can't be read/);
});

test("the notebook renderer replaces what it drew and survives an item without JSON", () => {
  const sent: unknown[] = [];
  const element = document.createElement("div");
  const renderer = activate({ postMessage: (message) => void sent.push(message) });

  renderer.renderOutputItem({ json: () => sample("settled") }, element);
  element.querySelector<HTMLButtonElement>(".dtd-choices button, .dtd-feedback button")?.click();
  renderer.renderOutputItem({ json: () => JSON.parse("{") as unknown }, element);

  assert.equal(1, sent.length);
  assert.equal(1, element.childElementCount);
  assert.match(shown(element.children[0] as Element), /holds no diagnosis/);
});

test("the notebook renderer has only the buttons that its extension acts upon", () => {
  const labels = (context: object, ...handled: "feedback"[][]): (string | null)[] => {
    const element = document.createElement("div");
    activate(context, ...handled).renderOutputItem({ json: () => sample("settled") }, element);
    return [...element.querySelectorAll("button")].map((each) => each.textContent);
  };

  assert.equal(false, labels({}).includes("Not helpful"));
  const both = { postMessage: () => undefined, onDidReceiveMessage: () => ({ dispose: () => undefined }) };
  assert.equal(true, labels(both).includes("Apply to your code"));
  assert.equal(false, labels(both, ["feedback"]).includes("Apply to your code"));
  assert.equal(true, labels({ postMessage: () => undefined }, ["feedback"]).includes("Not helpful"));
});
