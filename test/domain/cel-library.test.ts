/** Functions of the CEL extensions: values, errors, static check and cost. */
import assert from "node:assert/strict";
import test from "node:test";
import { isCelList, isCelMap } from "@bufbuild/cel";
import type { JsonObject } from "../../src/domain/json.ts";
import { MAX_STEPS } from "../../src/domain/policy/condition/cel.ts";
import { Activation, compileCondition, compileExpression } from "../../src/domain/policy/condition/condition.ts";
import { evaluateConditionParts } from "../../src/domain/policy/condition/condition-parts.ts";
import { findTypeFault } from "../../src/domain/policy/check/type-check.ts";
import { FACTS, NOW } from "../support/policy.ts";

const on = (params: JsonObject): Activation =>
  new Activation({ agent_id: "a", tool: "t", operation: "o", params, context: {} }, FACTS, NOW);

function toJson(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (isCelList(value)) return [...value].map(toJson);
  if (isCelMap(value)) return Object.fromEntries([...value].map(([key, item]) => [key as string, toJson(item)]));
  return value;
}

/** Returns the value of an expression as JSON, or its error code. */
function valueOf(source: string, params: JsonObject = {}): unknown {
  const compiled = compileExpression(source);
  assert.ok(compiled.ok, `${source}: ${compiled.ok ? "" : compiled.message}`);
  const result = compiled.expression.evaluate(on(params));
  return "error" in result ? result.error : toJson(result.value);
}

test("cel.bind names a value within an expression", () => {
  const cases: [source: string, value: unknown][] = [
    ["cel.bind(fee, params.n * 2, fee + fee)", 12],
    ["cel.bind(a, 1, cel.bind(b, a + 1, [a, b]))", [1, 2]],
    ["params.l.filter(x, cel.bind(y, x * x, y > 4 && y < 16))", [3]],
    ["cel.bind(params, 1, params) + params.n", 4],
    ["cel.bind(x, params.l.map(x, x + 1), x)", [2, 3, 4, 5]],
    ["cel.bind(x, params.nope, true)", "CONDITION_ERROR"],
    ["cel.bind(x, params.nope, true) || true", true],
  ];
  for (const [source, value] of cases) assert.deepEqual(valueOf(source, { n: 3, l: [1, 2, 3, 4] }), value, source);

  const faults: [source: string, message: RegExp][] = [
    ["cel.bind('x', 1, true)", /"bind" is not used like this; write for example cel\.bind\(fee/],
    ["cel.bind(x, 1)", /"bind" is not used like this/],
    ["cel.bind(x, 1, x > 0) && x > 0", /there is no variable "x"/],
    ["cel.bind(x, x + 1, x > 0)", /there is no variable "x"/],
  ];
  for (const [source, message] of faults) {
    const compiled = compileCondition(source);
    assert.match(compiled.ok ? "it compiles" : compiled.message, message, source);
  }
  assert.match(findTypeFault("cel.bind(t, tool, t > 5)", "condition")?.message ?? "", /cannot compare/);

  // Eight are allowed, and no more than three around each other.
  const bound = (body: string): string => `cel.bind(a, 1, cel.bind(b, a, cel.bind(c, b, ${body})))`;
  assert.ok(compileCondition(bound("params.l.all(x, params.l.all(y, params.l.all(z, x + y > z)))")).ok);
  const four = "params.l.all(x, params.l.all(y, params.l.all(z, params.l.all(w, x + y > z + w))))";
  assert.ok(!compileCondition(bound(four)).ok);

  const parts = evaluateConditionParts("cel.bind(fee, params.n * 2, fee > 5)", on({ n: 3 }));
  assert.deepEqual(
    parts.map(({ expression, element, value }) => [expression, element, value]),
    [
      ["cel.bind(fee, params.n * 2, fee > 5)", null, "true"],
      ["params.n * 2", "fee", "6"],
      ["fee > 5", null, "true"],
      ["fee", null, "6"],
    ],
  );
});

test("values that cel.bind shares cost what they hold", () => {
  const doubled = (levels: number, body: string): string =>
    Array.from({ length: levels }).reduceRight<string>(
      (inner, _, i) => `cel.bind(v${i + 1}, v${i} + v${i}, ${inner})`,
      body,
    );
  for (const start of ["['a']", "'aaaaaaaaaaaaaaaa'"])
    assert.equal(valueOf(`cel.bind(v0, ${start}, ${doubled(40, "size(v40) > 0")})`), "CONDITION_LIMIT", start);
  const nested = doubled(20, "v20 == v20").replaceAll(/(v\d+) \+ (v\d+)/g, "[$1, $2]");
  assert.equal(valueOf(`cel.bind(v0, 'a', ${nested})`), true);
  assert.equal(findTypeFault(`cel.bind(v0, 'a', ${nested})`, "condition"), null);
});

test("strings, lists and numbers have the functions of the CEL extensions", () => {
  const cases: [source: string, value: unknown][] = [
    ["'a🦊b'.charAt(1)", "🦊"],
    ["'a🦊b'.substring(1, 2)", "🦊"],
    ["'a🦊b'.indexOf('b')", 2],
    ["'tacocat'.lastIndexOf('a')", 5],
    ["'ÄB'.lowerAscii()", "Äb"],
    ["'äb'.upperAscii()", "äB"],
    ["'a-b-c'.replace('-', '+', 1)", "a+b-c"],
    ["'a,b,,c'.split(',')", ["a", "b", "", "c"]],
    ["'a,b,c'.split(',', 2)", ["a", "b,c"]],
    ["' \\u00a0x\\t'.trim()", "x"],
    ["['a', 'b'].join('; ')", "a; b"],
    ["[1, 2, 3, 4].slice(1, 3)", [2, 3]],
    ["[1, [2, [3]]].flatten()", [1, 2, [3]]],
    ["[1, 1.0, 'a', 'a'].distinct()", [1, "a"]],
    ["[3, 1.5, 2].sort()", [1.5, 2, 3]],
    ["['b', '🦊', '\\uffff', 'ab'].sort()", ["ab", "b", "\uffff", "🦊"]],
    ["[1, 2].reverse()", [2, 1]],
    ["lists.range(3)", [0, 1, 2]],
    ["sets.contains(params.all, ['a', 'b'])", true],
    ["sets.equivalent(['a', 'b', 'a'], ['b', 'a'])", true],
    ["sets.intersects(['a'], ['b'])", false],
    ["math.greatest(1, 2.5, 2)", 2.5],
    ["math.least([3, 2])", 2],
    ["math.round(-2.5)", -3],
    ["[[].sum(), [1, 2].sum(), [1, 2.5].sum(), [0.5, 0.25].sum(), [-3].sum()]", [0, 3, 3.5, 0.75, -3]],
    ["[[1, 2].sum(), [1, 2.0].sum(), [1u].sum()].map(x, type(x)) == [int, double, uint]", true],
    ["math.isNaN([1.0, 0.0 / 0.0].sum()) && math.isNaN([0.0 / 0.0, 1.0].max()) && [2, 0.0 / 0.0].min() == 2", true],
    ["[[3, 9.5, 2u].max(), [3, 9.5, 2].min(), [7].max()]", [9.5, 2, 7]],
    ["[['b', '\uffff', '🦊'].max(), ['b', 'ab'].min()]", ["🦊", "ab"]],
    ["[duration('1m'), duration('1h')].max() == duration('1h') && [true, false].min() == false", true],
    ["params.all.map(x, size(x)).sum()", 3],
    ["'%s is %d, %.2f and %e'.format(['x', 5, 2.5, 1234.5])", "x is 5, 2.50 and 1.234500e+03"],
    ["strings.quote('a \"b\" \\\\')", '"a \\"b\\" \\\\"'],
    ["math.abs(-3)", 3],
    [
      "[math.bitAnd(6, 3), math.bitOr(4, 1), math.bitXor(5, 1), math.bitNot(1), math.bitShiftLeft(1, 4)]",
      [2, 5, 4, -2, 16],
    ],
    ["math.bitAnd(params.mode, 2) != 0 && math.sqrt(9) == 3.0", true],
    ["[1, [2, [3]]].flatten(2)", [1, 2, 3]],
    ["string(base64.decode('aGVsbG8='))", "hello"],
    ["base64.encode(b'hello')", "aGVsbG8="],
  ];
  for (const [source, value] of cases)
    assert.deepEqual(valueOf(source, { all: ["a", "b", "c"], mode: 6 }), value, source);
});

test("an optional value can be absent without an error", () => {
  const params = { n: 5, nothing: null, order: { total: 7 }, items: ["a"], text: "x" };
  const cases: [source: string, value: unknown][] = [
    ["params.?n.orValue(0) + params.?absent.orValue(1)", 6],
    ["params.?order.total.value() + params.?order.absent.orValue(1)", 8],
    ["params.?absent.total.orValue(3)", 3],
    ["params.?order . ?total.hasValue()", true],
    ["params[?'n'].value() + (has(params.?absent.total) ? 1 : 0)", 5],
    ["params.items[?0].orValue('') + params.items[?1].orValue('b')", "ab"],
    ["params.?absent.or(params.?n).orValue(1 / 0)", 5],
    ["[params.?n, optional.none()].unwrapOpt() + [?params.?n, 1, ?params.?absent]", [5, 5, 1]],
    ["{?'n': params.?n, ?'x': params.?absent}", { n: 5 }],
    ["params.?n.optMap(n, n * 2).orValue(0) + params.?absent.optMap(n, n / 0).orValue(1)", 11],
    ["params.?order.optFlatMap(order, order.?total).value()", 7],
    ["params.items.first().value() + string([1, 2].last().value())", "a2"],
    ["optional.ofNonZeroValue('').hasValue() || optional.ofNonZeroValue(params.?absent).hasValue()", false],
    ["[optional.of(1), optional.of(1)].distinct().size()", 1],
    ["params.?n == optional.of(5) && params.?absent == optional.none()", true],
    ["params.text == 'a?[?b]' ? 1 : params.text == '.?' ? 2 : 3 // {?\n", 3],
    // What is present and has no members is an error, so no wrong type becomes a default.
    ["params.?text.total.orValue(0)", "CONDITION_ERROR"],
    ["params.?nothing.total.orValue(0)", "CONDITION_ERROR"],
    ["params.?absent.value()", "CONDITION_ERROR"],
    ["params.nope.?n.orValue(0)", "CONDITION_ERROR"],
    ["params.n.orValue(0)", "CONDITION_ERROR"],
    ["[?params.n]", "CONDITION_ERROR"],
    ["params.?order.all(x, true)", "CONDITION_ERROR"],
  ];
  for (const [source, value] of cases) assert.deepEqual(valueOf(source, params), value, source);

  const fault = (source: string): string => {
    const compiled = compileCondition(source);
    if (!compiled.ok) return `${compiled.offset}: ${compiled.message}`;
    const found = findTypeFault(source, "condition");
    return found === null ? "" : `${found.offset}: ${found.message}`;
  };
  assert.equal(
    fault("params.?n"),
    "6: the expression is an optional; it must be true or false; read the optional with orValue(), such as params.?amount.orValue(0)",
  );
  assert.match(fault("params.?n <= 5"), /"<=" cannot compare an optional and an int; read the optional with orValue/);
  assert.match(fault("principal.?ownr.hasValue()"), /principal has no field "ownr"; did you mean "owner"/);
  assert.match(fault("principal.?owner.orValue('') > 5"), /cannot compare/);
  assert.match(fault("[?tool] == []"), /tool is a string; it must be optional/);
  assert.match(fault("params.?items.exists(?x, true)"), /the condition cannot be read/);
  assert.match(fault("params.?size() > 1"), /6|7: .*"\?" is not possible here/);
  assert.match(fault("has(params.?n)"), /"\?" is not possible here/);
  assert.match(fault("params.?n.optMap('n', true)"), /"optMap" is not used like this; write for example/);
  assert.equal(fault("params.?n.orValue(0) <= 100 && params[?'a'].hasValue() && 'x' in [?params.?text]"), "");

  const parts = evaluateConditionParts(
    "params.?n.optMap(n, n > 3).orValue(false) && params[?'x'].hasValue()",
    on(params),
  );
  assert.deepEqual(
    parts.map(({ expression, element, value }) => [expression, element, value]),
    [
      ['params.?n.optMap(n, n > 3).orValue(false) && params[?"x"].hasValue()', null, "false"],
      ["params.?n.optMap(n, n > 3).orValue(false)", null, "true"],
      ["params.?n.optMap(n, n > 3)", null, "optional.of(true)"],
      ["params.?n", "n", "optional.of(5)"],
      ["n > 3", null, "true"],
      ["n", null, "5"],
      ['params[?"x"].hasValue()', null, "false"],
      ['params[?"x"]', null, "optional.none()"],
    ],
  );
  const compiled = compileExpression("params.?order.total.orValue(0) + params[?'n'].orValue(0)");
  assert.deepEqual(compiled.ok ? compiled.expression.members : [], ["/params/order/total", "/params/n"]);
});

test("regex functions find what a pattern and its group match", () => {
  const cases: [source: string, value: unknown][] = [
    ["regex.extract('id: 17, id: 18', 'id: ([0-9]+)').value()", "17"],
    ["regex.extract('id: 17', '[0-9]+').value()", "17"],
    ["regex.extract('none', '[0-9]+').hasValue()", false],
    ["regex.extract('id: ', 'id: ([0-9]*)').hasValue()", false],
    ["regex.extractAll('a@x.io, b@y.io', '([a-z]+)@')", ["a", "b"]],
    ["regex.extractAll('aXbXc', 'X?')", ["", "X", "X", ""]],
    ["regex.extractAll('🦊a🦊', '.')", ["🦊", "a", "🦊"]],
    ["regex.extract('abcabc', 'a.*c').value() + regex.extract('abcabc', 'a.*?c').value()", "abcabcabc"],
    ["regex.extract('abab', '(?:a|ab)(?:b|abab)?').value()", "ab"],
    ["regex.extract('x foo_bar-foo', '\\\\bfoo\\\\b').value()", "foo"],
    ["regex.extractAll('a\\nb', '(?m)^.$')", ["a", "b"]],
    ["regex.extract('Straße ÄRGER', '(?i)ärger').value()", "ÄRGER"],
    ["regex.replace('John Doe', '(\\\\w+) (\\\\w+)', '\\\\2 \\\\1')", "Doe John"],
    ["regex.replace('aaa', 'a', 'b', 2)", "bba"],
    ["regex.replace('aaa', 'a', 'b', 0) + regex.replace('abc', 'x*', '-')", "aaa-a-b-c-"],
    ["params.urls.all(u, regex.extract(u, '^https://([^/]+)/').orValue('') in ['a.io', 'b.io'])", true],
  ];
  const params = { urls: ["https://a.io/x", "https://b.io/"] };
  for (const [source, value] of cases) assert.deepEqual(valueOf(source, params), value, source);

  // The search agrees with the one of JavaScript, whose preferences are the same.
  const texts = ["", "aab", "abba", "aa\nbb", "a_b aB", "xaaay", "bbab"];
  for (const pattern of [
    "a+",
    "a+?b",
    "(a|ab)(b*)",
    "(a*)(ab)?",
    "^a|b$",
    "\\ba",
    "\\Bb",
    "(?:a|b){2}",
    "[^a]*",
    "(a)|(b)",
  ])
    for (const text of texts) {
      const native = [...text.matchAll(new RegExp(pattern, "gu"))].map(([whole]) => whole);
      const source = `regex.replace(params.t, r'${pattern}', r'<\\0>')`;
      const marked = text.replaceAll(new RegExp(pattern, "gu"), "<$&>");
      // After a match, RE2 does not count an empty match at its end, and JavaScript does.
      if (!native.includes("") || native.every((whole) => whole === ""))
        assert.equal(valueOf(source, { t: text }), marked, `${pattern} in ${JSON.stringify(text)}`);
    }

  const faults: [source: string, message: RegExp][] = [
    ["regex.extract(params.a, params.b).hasValue()", /the pattern of "regex.extract" must be a text in the condition/],
    ["regex.extract(params.a, '(').hasValue()", /the pattern is not an RE2 regular expression/],
    ["regex.extract(params.a, '(a)(b)').hasValue()", /returns one group, and the pattern has 2; write the others as/],
    ["regex.replace(params.a, '(a)', r'\\2') == ''", /a backslash must be followed by a backslash or by the number/],
    ["regex.extractAll(params.a, 'a{400}b{400}') == []", /the pattern compiles to/],
  ];
  for (const [source, message] of faults) {
    const compiled = compileCondition(source);
    assert.match(compiled.ok ? "it compiles" : compiled.message, message, source);
  }
  assert.match(findTypeFault("regex.extract(tool, 'a') == 'a'", "condition")?.message ?? "", /never equal/);
  assert.match(findTypeFault("regex.extract(tool, 'a').orValue('') > 5", "condition")?.message ?? "", /cannot compare/);
  // An untyped value of the request is not optional.
  for (const never of ["params.?a == params.b", "context['b'] != params.?a.c", "params.?a in params.list"])
    assert.match(
      findTypeFault(never, "condition")?.message ?? "",
      /an optional.*(never equal|always differ|never contains)/,
    );
  for (const can of ["params.?a == params.?b", "params.?a == dyn(params.b)", "params.?a.orValue(0) == params.b"])
    assert.equal(findTypeFault(can, "condition"), null, can);
});

test("addresses, networks, URLs, paths and versions are compared by their parts", () => {
  const cases: [source: string, value: unknown][] = [
    ["string(ip('2001:DB8:0:0:1:0:0:1'))", "2001:db8::1:0:0:1"],
    ["['::', '0:0:0:0:0:0:0:1', '1:0:0:2:0:0:0:3'].map(x, string(ip(x)))", ["::", "::1", "1:0:0:2::3"]],
    ["type(ip('10.0.0.1')) == net.IP && type(cidr('10.0.0.0/8')) == net.CIDR && net.IP != net.CIDR", true],
    ["ip('2001:db8::1') == ip('2001:DB8::1') && ip('::') != ip('::ffff')", true],
    ["cidr('127.0.0.1/24') == cidr('127.0.0.0/24') || cidr('10.0.0.0/8') == cidr('10.0.0.0/9')", false],
    ["ip('10.0.0.1') in [ip('10.0.0.2'), ip('10.0.0.1')] && ip('10.0.0.1') != cidr('10.0.0.1/32')", true],
    [
      "['127.0.0.1', '2001:db8::1', '2001:DB8::1', '2001:db8:0:0:0:0:0:1'].map(x, ip.isCanonical(x))",
      [true, true, false, false],
    ],
    ["cidr('10.0.0.0/8').containsIP(ip('10.1.1.1')) && cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/9'))", true],
    ["cidr('192.168.1.5/24').ip() == ip('192.168.1.5') && !cidr('192.168.1.5/24').isMask()", true],
    ["cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24') && cidr('192.168.1.0/24').isMask()", true],
    ["cidr('2001:db8::/32').containsIP(ip('192.168.1.1')) || cidr('1.1.1.1/32').containsIP(ip('2001:db8::1'))", false],
    [
      "['10.0.0.1', '::1', '10.1', '010.0.0.1', '1::2::3', '::ffff:10.0.0.1'].map(x, isIP(x))",
      [true, true, false, false, false, false],
    ],
    ["cidr('10.0.0.0/8').containsIP('10.255.0.1')", true],
    ["cidr('10.0.0.0/8').containsIP('11.0.0.1')", false],
    ["cidr('10.0.0.0/8').containsIP('::1')", false],
    ["cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')", true],
    ["cidr('2001:db8::/32').containsIP('2001:db8:ffff::1')", true],
    ["ip('169.254.169.254').isLinkLocalUnicast() && ip('127.8.0.1').isLoopback() && ip('fd00::1').isPrivate()", true],
    ["string(cidr('10.1.2.3/8').masked()) + ' ' + string(cidr('10.1.2.3/8').ip())", "10.0.0.0/8 10.1.2.3"],
    [
      "['0.0.0.0', '224.0.0.1', '255.255.255.255', '8.8.8.8', '::'].map(x, ip(x).isGlobalUnicast())",
      [false, false, false, true, false],
    ],
    ["ip('::').isUnspecified() && ip('ff02::1').isLinkLocalMulticast()", true],
    ["ip('10.0.0.1').family() + cidr('::/64').prefixLength()", 68],
    ["url('https://Good.example:8443/a/../b?x=1&x=2').getHost()", "good.example:8443"],
    ["url('https://good.example@evil.example/').getHostname()", "evil.example"],
    ["url('http://2130706433/').getHostname()", "127.0.0.1"],
    [
      "url('http://[::1]:80/x').getHostname() + url('http://a/x').getPort() + url('http://a/b/../c').getEscapedPath()",
      "::1/c",
    ],
    ["url('https://a/?x=1&x=2&y=').getQuery()", { x: ["1", "2"], y: [""] }],
    [
      "['https://a/', '/a', 'a', 'https:a', 'https://a\\\\b', 'https://a /', 'https://ä/'].map(x, isURL(x))",
      [true, false, false, false, false, false, false],
    ],
    ["['/a/./b//../c', '/../etc', 'a/../../b', '', '.'].map(x, path.clean(x))", ["/a/c", "/etc", "../b", ".", "."]],
    ["semver('1.10.0').isGreaterThan('1.9.3') && semver('1.0.0-rc.1').isLessThan('1.0.0')", true],
    ["semver('1.0.0-alpha.2').compareTo('1.0.0-alpha.10')", -1],
    ["['1.2.3', 'v1.2.3', '1.2', '01.2.3', '1.0.0+x'].map(x, isSemver(x))", [true, false, false, false, true]],
    ["semver('4.5.6').major() * 100 + semver('4.5.6').minor() * 10 + semver('4.5.6').patch()", 456],
  ];
  for (const [source, value] of cases) assert.deepEqual(valueOf(source), value, source);
});

test("a value that a function does not accept is an error, and is never part of a message", () => {
  const sources = [
    "ip('secret')",
    "cidr('10.0.0.0/33')",
    "cidr('10.0.0.0/8').containsIP('secret')",
    "ip('::ffff:192.168.0.1')",
    "ip('::ffff:c0a8:1')",
    "ip('fe80::1%en0')",
    "ip.isCanonical('127.0.0.1.0')",
    "cidr('fe80::1%en0/24')",
    "cidr('192.168.0.0/')",
    "isIP(dyn(cidr('192.168.0.0/24')))",
    // A comparison with a string would always be false, so a rule that denies an address would never match.
    "ip('10.0.0.1') == dyn('10.0.0.1') || true",
    "dyn('10.0.0.1') in [ip('10.0.0.1')]",
    "'%d'.format(['secret'])",
    "'%s'.format([])",
    "'secret'.format([1, ip('10.0.0.1')]) + '%s'.format([ip('10.0.0.1')])",
    "'%'.format([1])",
    "'%.101f'.format([1.0])",
    "[1, 'secret'].sum()",
    "[1u, 1].sum()",
    "[9223372036854775807, 1].sum()",
    "[18446744073709551615u, 1u].sum()",
    "[].max()",
    "[[1]].max()",
    "[1, 'secret'].min()",
    "url('secret')",
    "url('https://good.example\\\\@evil.example')",
    "semver('secret')",
    "[1, 'secret'].sort()",
    "['secret', 1].join()",
    "'secret'.charAt(9)",
    "'secret'.substring(4, 2)",
    "math.greatest('secret', 1)",
    "math.greatest([])",
    "base64.decode('secret!')",
    "[1].slice(0, 2)",
  ];
  for (const source of sources) {
    const compiled = compileExpression(source);
    assert.ok(compiled.ok, source);
    const result = compiled.expression.evaluate(on({}));
    assert.ok("error" in result && result.error === "CONDITION_ERROR", source);
    assert.doesNotMatch(result.message, /secret/);
  }
});

test("the static check knows the functions, their namespaces and their arguments", () => {
  const fault = (source: string): string => {
    const compiled = compileExpression(source);
    return compiled.ok ? (findTypeFault(source, "value")?.message ?? "") : compiled.message;
  };
  assert.equal(fault("sets.contain([1], [1])"), 'there is no function "sets.contain"; did you mean "sets.contains"?');
  assert.equal(fault("math.greatest()"), '"math.greatest" takes 1 or 2 or 3 or 4 or 5 arguments, not 0');
  assert.equal(fault("tool.lowerAsci()"), 'there is no method "lowerAsci"; did you mean "lowerAscii"?');
  assert.match(fault("sets.contains(tool, [1])"), /"sets\.contains" does not accept a string and a list/);
  assert.match(fault("cidr('10.0.0.0/40').containsIP(params.ip)"), /cidr\("10\.0\.0\.0\/40"\) always fails/);
  assert.match(
    fault("isIP(cidr('10.0.0.0/8'))"),
    /"isIP" does not accept a network; convert a string with ip\(\) or cidr\(\)/,
  );
  assert.match(fault("ip(tool) == tool"), /\(an IP address\) and tool \(a string\) are never equal/);
  for (const never of ["ip(params.a) == params.b", "params.a != cidr('10.0.0.0/8')", "ip(params.a) in params.list"])
    assert.match(fault(never), /(an IP address|a network).*(never equal|always differ|never contains)/, never);
  assert.match(fault("params.ip.isPrivate() && tool.isPrivate()"), /"isPrivate" does not accept a string; convert/);
  assert.equal(fault("params.ips.all(ip, ip(ip).isPrivate() && ip.isCanonical(ip))"), "");
  assert.match(fault("'%q'.format([1])"), /there is no placeholder "%q"; write %s, %d/);
  assert.match(fault("'%s %s'.format([1])"), /the format has 2 placeholders, and the list 1 value/);
  assert.match(fault("'%s'.format([1, 2])"), /the format has 1 placeholder, and the list 2 values/);
  assert.match(fault("'%d%%'.format([tool])"), /%d does not accept a string/);
  assert.match(fault("[tool].sum()"), /"sum" adds numbers; the elements are a string/);
  assert.equal(fault("'%s'.format(params.list) + '%d %x'.format([params.n, tool])"), "");
  assert.equal(fault("params.list.map(x, x.price).sum() * 1.25 > 5 && [1, 2].sum() * 2 > 5"), "");
  assert.match(fault("[1.5].sum() * 1.25 > 5.0"), /"\*" does not accept an int and a double; a value of/);
  assert.equal(fault("params.paths.exists(path, path.matches('x') && path.contains('y'))"), "");
  assert.equal(fault("sets.contains(params.a, ['x']) && math.greatest(params.n, 2) > 1"), "");
});

test("explanations show calls with their qualified names", () => {
  const parts = evaluateConditionParts("sets.contains(['a', 'b'], params.l)", on({ l: ["a"] }));
  assert.deepEqual(
    parts.map(({ expression, value }) => [expression, value]),
    [
      ['sets.contains(["a", "b"], params.l)', "true"],
      ["params.l", '["a"]'],
    ],
  );
});

test("each function stops at the step limit of a decision, for any argument", () => {
  const long = "ab".repeat(500_000);
  const texts = Array.from({ length: 30_000 }, (_, i) => `text ${i}`);
  const hostile = [
    "params.t.split('') == []",
    "params.t.replace('a', params.t) == ''",
    "params.few.all(x, params.t.indexOf(x) < 0)",
    "params.few.all(x, params.t.charAt(5) != x)",
    "params.few.all(x, params.t.reverse() != x)",
    "params.few.all(x, params.l.join(x) != '')",
    "params.l.distinct() == []",
    "params.few.all(x, params.l.sort() != [])",
    "params.few.all(x, sets.contains(params.l, [x]))",
    "params.few.all(x, params.l.flatten().reverse().slice(0, 5) != [])",
    "params.few.all(x, !isURL('https://a/' + x + params.u))",
    "params.few.all(x, path.clean(params.u) != x)",
    "params.few.all(x, base64.encode(bytes(params.t)) != x)",
    "params.few.all(x, params.t.trim().upperAscii() != x)",
    "lists.range(1000000000000).size() > 0",
    "params.few.all(x, regex.extract(params.t, '(a|b)*c|ba+$').hasValue() || true)",
    "params.few.all(x, regex.extractAll(params.t, 'a').size() > 0)",
    "params.few.all(x, regex.extract(params.t, '(?:a?){20}(?:ab){30}x?$').hasValue())",
    "params.few.all(x, regex.replace(params.t, 'b', params.u) != x)",
    "params.few.all(x, math.greatest(params.n) > 0)",
  ];
  for (const source of hostile) {
    const compiled = compileCondition(source);
    assert.ok(compiled.ok, source);
    const params = { t: long, l: texts, few: texts.slice(0, 2_000), u: "/a".repeat(4_000), n: texts.map((_, i) => i) };
    const activation = on(params);
    const before = process.cpuUsage();
    const result = compiled.condition.evaluate(activation);
    const { user, system } = process.cpuUsage(before);
    assert.ok("error" in result && result.error === "CONDITION_LIMIT", `${source}: ${JSON.stringify(result)}`);
    // Work that the meter does not count takes seconds; a busy machine takes less than one.
    assert.ok(user + system < 2_000_000, `${source} took ${(user + system) / 1000} ms for ${MAX_STEPS} steps`);
    if (process.env["ASSENT_TEST_MEASURE"]) console.error(source, (user + system) / 1000, "ms");
  }
});
