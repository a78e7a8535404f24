package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/modules/scripts/engine"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

func TestWhatScriptsReturn(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for source, want := range map[string]string{
		// The language.
		"return 1 + 1": "2",
		"const [a, b] = await Promise.all([search('x'), describe('y')]); return a + b":                                                                           `"found xdescribed y"`,
		"await new Promise(done => setTimeout(done, 5, 'x')); return 'later'":                                                                                    `"later"`,
		"let n = 0; const id = setTimeout(() => n++, 1); clearTimeout(id); await search(''); return n":                                                           "0",
		"const order = []; const at = ms => new Promise(r => setTimeout(() => r(order.push(ms)), ms)); await Promise.all([at(20), at(1), at(10)]); return order": "[1,10,20]",
		"class A { #x = 1; get x() { return this.#x ?? 2 } }; return new A()?.x":                                                                                 "1",
		"return Object.groupBy([1, 2, 3], n => n % 2 ? 'odd' : 'even')":                                                                                          `{"odd":[1,3],"even":[2]}`,
		"const a = {b: [1n, {c: 2}]}; const c = structuredClone(a); c.b[1].c = 3; return [a, c]":                                                                 `[{"b":[1,{"c":2}]},{"b":[1,{"c":3}]}]`,
		"return new Map([['a', new Set([1])]])":                                                                                                                  `[["a",[1]]]`,
		"return new Date(0)":                                                                                                                                     `"1970-01-01T00:00:00.000Z"`,
		"return {u: undefined, f() {}, n: null, nan: NaN, s: '<\"'}":                                                                                             `{"n":null,"nan":null,"s":"<\""}`,
		"return JSON.stringify({id: 12345678901234567890n})":                                                                                                     `"{\"id\":\"12345678901234567890\"}"`,
		// Scripts that are one expression, or a function.
		"await search('x')":                        `"found x"`,
		"async () => { return 'called' }":          `"called"`,
		"async function main() { return 'main' }":  `"main"`,
		"  (async () => { return 'itself' })();\n": `"itself"`,
		"return args":                              `[]`,
		"search('a') // a comment":                 `"found a"`,
		// Functions that goja lacks.
		"return [/\\p{L}+/u.exec('-h\u00e9')[0], new RegExp('\\\\p{Script=Greek}', 'u').test('\u03b2'), /x/ instanceof RegExp, RegExp('b').test('abc')]": `["hé",true,true,true]`,
		"const c = structuredClone({at: new Date(0), of: new Map([[1, new Set([2])]])}); return [c.at.getTime(), c.of.get(1).has(2)]":                    "[0,true]",
		"return [btoa('abc'), atob('YWJj'), Buffer.from('aMOp', 'base64').toString(), Buffer.from('\u00e9').toString('base64')]":                         `["YWJj","abc","hé","w6k="]`,
		"const {promise, resolve} = Promise.withResolvers(); queueMicrotask(() => resolve(1)); return await promise":                                     "1",
		"#!/usr/bin/env -S dynmcp run\nreturn 2": "2",
		// The last expression is the value, and promises in it are awaited.
		"async function main() { return await search('x') }\nmain()":         `"found x"`,
		"const f = async () => 3\nf().then(n => n + 1).catch(console.error)": "4",
		"if (!args.length) { return 'early' }\n1":                            `"early"`,
		"return [search('a'), {b: search('b')}]":                             `["found a",{"b":"found b"}]`,
		// Calls.
		"return await tools.github.list_issues({state: 'open'})":                            `{"name":"github/list_issues","args":{"state":"open"}}`,
		"return await tools['my-server']['a-tool']({})":                                     `{"name":"my-server/a-tool","args":{}}`,
		"return await tools.my_server.a_tool()":                                             `{"name":"my-server/a_tool","args":{}}`,
		"return await call('github/x', {a: [1]})":                                           `{"name":"github/x","args":{"a":[1]}}`,
		"return (await call.raw('github/x', {})).content":                                   `[]`,
		"return Object.keys(tools)":                                                         `["github","my-server"]`,
		"return typeof (await tools.github)":                                                `"object"`,
		"return await resource('file:///x')":                                                `"read"`,
		"return (await call('a/b', {id: 9007199254740993n})).args.id":                       `9007199254740993`,
		"return (await call('a/b', {id: 9007199254740993n})).args.id === 9007199254740993n": `true`,
	} {
		if got := run(t, p, source, echo); string(got.Value) != want {
			t.Errorf("%s\ngot  %s\nwant %s", source, got.Value, want)
		}
	}
}

func TestWhatACallReturns(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	const source = "const v = await call('a/b', {}); return {type: Array.isArray(v) ? 'array' : typeof v, v}"
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1}}`: `{"type":"object","v":{"a":1}}`,
		string(text("plain")):                                                                    `{"type":"string","v":"plain"}`,
		string(text("12")):                                                                       `{"type":"string","v":"12"}`,
		string(text(` {"a": [1, "x", null, true]}`)):                                             `{"type":"object","v":{"a":[1,"x",null,true]}}`,
		string(text(`[1]`)):                                                                      `{"type":"array","v":[1]}`,
		string(text(`{"a": 1} and more`)):                                                        `{"type":"string","v":"{\"a\": 1} and more"}`,
		string(text(`{"__proto__": {"x": 1}}`)):                                                  `{"type":"object","v":{"__proto__":{"x":1}}}`,
		string(text(strings.Repeat("[", 600) + strings.Repeat("]", 600))):                        `{"type":"string","v":"` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `"}`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                    `{"type":"string","v":"a\nb"}`,
		`{"content":[{"type":"resource","resource":{"uri":"u","text":"t"}}]}`:                    `{"type":"string","v":"t"}`,
		`{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"u","name":"n"}]}`: `{"type":"array","v":["a",{"type":"resource_link","uri":"u","name":"n"}]}`,
		`{"content":[],"structuredContent":{"n":[9007199254740991,9007199254740993,-9007199254740993,1e3,0.1]}}`: `{"type":"object","v":{"n":[9007199254740991,9007199254740993,-9007199254740993,1000,0.1]}}`,
		`{"content":[],"structuredContent":{"n":[1e400,9007199254740993.5,18014398509481984.0]}}`:                `{"type":"object","v":{"n":["1e400","9007199254740993.5",18014398509481984]}}`,
		`{"content":[]}`: `{"type":"string","v":""}`,
		`{}`:             `{"type":"undefined"}`,
		`7`:              `{"type":"undefined"}`,
	} {
		if got := run(t, p, source, answering(result)); string(got.Value) != want {
			t.Errorf("%s\ngot  %s\nwant %s", result, got.Value, want)
		}
	}
}

// Each error must say where in the script it happened, so that a model can correct it.
func TestErrorsOfScripts(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c := echo
	c.Call = func(_ context.Context, name string, _ json.RawMessage) (json.RawMessage, *script.Failure) {
		if name == "github/broken" {
			return json.RawMessage(`{"content":[{"type":"text","text":"no such issue"}],"isError":true}`), nil
		}
		return nil, &script.Failure{Message: "the server ended", Server: "github", Tool: "gone", Outcome: engine.Unknown}
	}
	for source, want := range map[string]string{
		"const a = 1\n\n  null.x": "line 3, column 8: TypeError: Cannot read property 'x' of undefined",
		"throw new Error('mine')": "line 1, column 7: Error: mine",
		"throw 'text'":            "line 1, column 1: the script threw text",
		"const f = () => {\n  throw 'text' };\ntry { f() } catch (e) { throw e }":                  "line 3, column 25: the script threw text",
		"var f = async function () { if (1) { throw null } }; await f()":                           "line 1, column 38: the script threw null",
		"await Promise.reject('text')":                                                             "the script threw text",
		"throw {code: 7}":                                                                          `line 1, column 1: the script threw {"code":7}`,
		"\n await call('github/broken', {})":                                                       "line 2, column 12: ToolError: no such issue",
		"await tools.github.gone({})":                                                              "line 1, column 24: ToolError: the server ended",
		"const f = async () => {\n await call.raw('github/broken') }\nawait Promise.all([1, f()])": "line 2, column 16: ToolError: no such issue",
		"setTimeout(() => { lost() }, 1); await new Promise(() => {})":                             "line 1, column 24: ReferenceError: lost is not defined",
		"await new Promise(() => {})":                                                              "the script waits for a promise that nothing settles",
		"await tools.nowhere.x({})":                                                                `line 1, column 13: TypeError: there is no server "nowhere": tools has github, my-server`,
		"return [call('github/broken')]":                                                           "line 1, column 13: ToolError: no such issue",
		"return [new Promise(() => {})]":                                                           "the value has a promise that nothing settles",
		"Promise.reject(new Error('lost')); return 1":                                              "line 1, column 16: Error: lost (nothing awaits this promise)",
		"await call('github/x', {p: search('')})":                                                  "line 1, column 11: TypeError: a promise cannot be an argument: await it",
		"return github.x()":                                                                        "line 1, column 8: ReferenceError: github is not defined: write tools.github",
		"return Object.keys(tools.github)":                                                         `line 1, column 19: TypeError: the tools of a server cannot be listed: use await search("words")`,
		"return process.env.HOME":                                                                  "line 1, column 16: TypeError: process is not available: what the script was given is in args",
		"return new URL('https://a.example')":                                                      "line 1, column 8: TypeError: URL is not available: take it apart with a regular expression",
		"await tools.github.x([1])":                                                                "line 1, column 21: TypeError: the arguments of a tool are an object: {name: value}",
		"await call('x', {})":                                                                      `line 1, column 11: TypeError: call needs the name of a tool, "server/tool", and its arguments`,
		"await call('a/b', {id: 9007199254740993})":                                                "line 1, column 11: TypeError: 9007199254740992 may have been rounded: write it as a BigInt, 9007199254740992n",
		"const a = {}; a.a = a; return a":                                                          "the value cannot be returned: TypeError: the value contains itself",
		"let a = []; for (let i = 0; i < 600; i++) a = [a]; return a":                              "the value cannot be returned: TypeError: the value nests deeper than 500",
		// Mistakes of models.
		"import x from 'y'":                          "line 1, column 1: SyntaxError: import is not available: a script has tools, call, search, describe, resource and console",
		"const x = await import('y')":                "line 1, column 17: SyntaxError: import is not available: a script has tools, call, search, describe, resource and console",
		"export default 1":                           "line 1, column 1: SyntaxError: export is not available: return the result",
		"const fs = require('fs')":                   "line 1, column 19: TypeError: require is not available: a script has tools, call, search, describe, resource and console",
		"const r = await fetch('https://a.example')": "line 1, column 22: TypeError: fetch is not available, a script has no network: call a tool of a server that fetches",
		"let x: string = 'a'":                        "line 1, column 6: SyntaxError: type annotations are not supported: remove `: string`",
		"const f = (a: number, b) => a":              "line 1, column 13: SyntaxError: type annotations are not supported: remove `: number`",
		"1;\nfunction f(a: Array<{x: string}>) {}":   "line 2, column 13: SyntaxError: type annotations are not supported: remove `: Array<{x: string}>`",
		"function f(a): Promise<void> {}":            "line 1, column 14: SyntaxError: type annotations are not supported: remove `: Promise<void>`",
		"function f(a?: string | null) {}":           "line 1, column 13: SyntaxError: type annotations are not supported: remove `?: string | null`",
		"return x as any[]":                          "line 1, column 10: SyntaxError: type annotations are not supported: remove `as any[]`",
		"interface Issue { title: string }":          "line 1, column 11: SyntaxError: type declarations are not supported: remove the one that begins with `interface`",
		"type X = string":                            "line 1, column 6: SyntaxError: type declarations are not supported: remove the one that begins with `type`",
		"const m = new Map<string, number>()":        "line 1, column 33: SyntaxError: type parameters are not supported: remove `<string, number>`",
		"return a!.b":                                "line 1, column 9: SyntaxError: type annotations are not supported: remove `!`",
		"for await (const x of []) {}":               "line 1, column 5: SyntaxError: for await is not available: use for (const x of await Promise.all(list))",
		"enum A {B}":                                 "line 1, column 1: SyntaxError: enum is TypeScript: write const Name = {…}",
		"async function* f() {}; 1":                  "line 1, column 1: SyntaxError: Async generators are not supported yet",
		"return (":                                   "SyntaxError: the script ends too early: a bracket or an operand is missing",
		"}); 1; (async () => {":                      "SyntaxError: a } too many",
	} {
		r, err := p.Run(t.Context(), of(source), c.answer)
		if _, ok := errors.AsType[*script.Failure](err); !ok || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", source, err, want)
		}
		if r == nil {
			t.Errorf("%s: no result", source)
		}
	}
}

func TestAnErrorOfACallSaysWhatFailed(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	const source = "try { await tools.github.create({}) } catch (e) { return [e instanceof Error, e.name, e.message, e.server, e.tool, e.outcome] }"
	got := run(t, p, source, calls{Call: func(context.Context, string, json.RawMessage) (json.RawMessage, *script.Failure) {
		return nil, &script.Failure{Message: "the server ended", Server: "hub", Tool: "make", Outcome: engine.Unknown}
	}})
	if want := `[true,"ToolError","the server ended","hub","make","unknown"]`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
	if want := "1 call ran: github/create (unknown: the server ended)"; got.Ran() != want {
		t.Errorf("got %s, want %s", got.Ran(), want)
	}
	got = run(t, p, source, answering(`{"content":[{"type":"text","text":"not\nfound"}],"isError":true}`))
	if want := `[true,"ToolError","not\nfound","github","create","done"]`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
	if want := "1 call ran: github/create (done: the tool says that it failed)"; got.Ran() != want {
		t.Errorf("got %s, want %s", got.Ran(), want)
	}
	// A failure that is returned is seen.
	got = run(t, p, "return await Promise.allSettled([call('a/b', {})])", answering(`{"content":[],"isError":true}`))
	if want := `[{"status":"rejected","reason":{"name":"ToolError","message":"the tool says that it failed, and not why","server":"a","tool":"b","outcome":"done"}}]`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
}

const picture = `{"type":"image","data":"AAAA","mimeType":"image/png"}`

func TestImagesAndBlobsAreHandles(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c := answering(`{"content":[{"type":"text","text":"a"},` + picture + `],"x":1}`)
	c.Resource = func(context.Context, string) (json.RawMessage, *script.Failure) {
		return json.RawMessage(`{"contents":[{"uri":"u","mimeType":"application/pdf","blob":"BBBBBBBB"}]}`), nil
	}
	const blob = `{"type":"resource","resource":{"uri":"u","mimeType":"application/pdf","blob":"BBBBBBBB"}}`
	for source, want := range map[string][]string{
		"return (await call('a/b'))[1]":                        {"", "", picture},
		"return (await call('a/b')).slice(1)":                  {"", "", picture},
		"return await resource('u')":                           {"", "", blob},
		"return [(await call('a/b'))[1], await resource('u')]": {"", "", picture, blob},
		"return await call('a/b')":                             {`["a","[image image/png, 3 bytes]"]`, "", textBlock(`["a","[image image/png, 3 bytes]"]`), picture},
		"return {p: (await call.raw('a/b')).content[1]}":       {`{"p":"[image image/png, 3 bytes]"}`, "", textBlock(`{"p":"[image image/png, 3 bytes]"}`), picture},
		"console.log((await call('a/b'))[1])":                  {"", "[image image/png, 3 bytes]\n"},
		"const i = (await call('a/b'))[1]; i.type = 'text'; console.log(`${i}`, JSON.stringify(i), i)": {"", "[image image/png, 3 bytes] \"[image image/png, 3 bytes]\" [image image/png, 3 bytes]\n"},
		"const i = (await call('a/b'))[1]; return [i, i]":                                              {"", "", picture},
		"return 'text'": {`"text"`, "", textBlock("text")},
	} {
		r := run(t, p, source, c)
		got := []string{string(r.Value), r.Printed}
		for _, block := range r.Content {
			got = append(got, string(block))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\ngot  %q\nwant %q", source, got, want)
		}
	}
	_, err := p.Run(t.Context(), of("await call('c/d', {i: (await call('a/b'))[1]})"), c.answer)
	if err == nil || !strings.Contains(err.Error(), "an image or a blob cannot be an argument") {
		t.Error(err)
	}
}

func textBlock(content string) string {
	quoted, _ := json.Marshal(content)
	return `{"type":"text","text":` + string(quoted) + `}`
}

func TestWhatIsPrinted(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for source, want := range map[string]string{
		"console.log('a', 1, true, null, undefined, {a: [1n]}, [1, 'x'], 12345678901234567890n)": `a 1 true null undefined {"a":[1]} [1,"x"] 12345678901234567890` + "\n",
		"console.log(search('x'), [search('y')])":                                                `[a promise: await it] ["[a promise: await it]"]` + "\n",
		"console.error(new Error('bad')); console.warn()":                                        "Error: bad\n\n",
		"const a = {}; a.a = a; console.log(a)":                                                  "[object Object]\n",
		"console.log({toString() { throw 1 }, toJSON() { throw 2 }})":                            "[a value without a text]\n",
	} {
		if got := run(t, p, source, echo); got.Printed != want || got.Content != nil {
			t.Errorf("%s\ngot  %q, %s\nwant %q", source, got.Printed, got.Content, want)
		}
	}
}
