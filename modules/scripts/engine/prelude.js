// Globals beside the language: newer functions that models write by habit, and errors in place
// of what a script cannot have.
(isHandle, property, recode) => {
	const define = (of, functions) => {
		for (const [name, value] of Object.entries(functions))
			Object.defineProperty(of, name, {value, writable: true, configurable: true});
	};
	define(Object, {groupBy(items, key) {
		const groups = Object.create(null);
		let i = 0;
		for (const item of items) (groups[key(item, i++)] ??= []).push(item);
		return groups;
	}});
	define(Map, {groupBy(items, key) {
		const groups = new Map();
		let i = 0;
		for (const item of items) {
			const k = key(item, i++);
			groups.has(k) ? groups.get(k).push(item) : groups.set(k, [item]);
		}
		return groups;
	}});
	define(Array, {async fromAsync(items, map = x => x) {
		const all = [];
		for (const item of items) all.push(await map(await item, all.length));
		return all;
	}});
	define(Promise, {withResolvers() {
		const all = {};
		all.promise = new this((resolve, reject) => Object.assign(all, {resolve, reject}));
		return all;
	}});
	define(BigInt.prototype, {toJSON() { return this.toString(); }});

	const clone = (v, seen) => {
		if (typeof v === "function" || typeof v === "symbol") throw new TypeError(`a ${typeof v} cannot be cloned`);
		if (typeof v !== "object" || v === null || isHandle(v)) return v;
		if (seen.has(v)) return seen.get(v);
		const keep = copy => (seen.set(v, copy), copy);
		if (v instanceof Date) return keep(new Date(v));
		if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
		if (v instanceof Map) {
			const copy = keep(new Map());
			v.forEach((value, key) => copy.set(clone(key, seen), clone(value, seen)));
			return copy;
		}
		if (v instanceof Set) {
			const copy = keep(new Set());
			v.forEach(value => copy.add(clone(value, seen)));
			return copy;
		}
		const copy = keep(Array.isArray(v) ? [] : v instanceof Error ? new v.constructor(v.message) : {});
		for (const key of Object.keys(v))
			Object.defineProperty(copy, key, {value: clone(v[key], seen), writable: true, enumerable: true, configurable: true});
		return copy;
	};
	define(globalThis, {
		structuredClone: v => clone(v, new Map()),
		Buffer: {from: (text, from) => ({
			toString: to => recode(`${text}`, from ?? "utf8", to ?? "utf8"),
			get length() { return recode(`${text}`, from ?? "utf8", "latin1").length; },
		})},
		btoa: text => recode(`${text}`, "latin1", "base64"),
		atob: text => recode(`${text}`, "base64", "latin1"),
		queueMicrotask(f) { Promise.resolve().then(f); },
	});

	const Native = RegExp;
	const Expression = function RegExp(pattern, flags) {
		if (typeof pattern === "string") pattern = property(pattern, `${flags}`);
		return Reflect.construct(Native, [pattern, flags], !new.target || new.target === Expression ? Native : new.target);
	};
	Expression.prototype = Native.prototype;
	Object.setPrototypeOf(Expression, Native);
	define(Native.prototype, {constructor: Expression});
	define(globalThis, {RegExp: Expression});

	// What models expect, and what to use instead.
	const given = ": a script has tools, call, search, describe, resource and console";
	const network = ", a script has no network: call a tool of a server that fetches";
	const bytes = ": use Buffer.from(text, encoding).toString(encoding)";
	const calling = ': write await call("server/tool", {…})';
	const words = {
		require: given, module: ": return the result", exports: ": return the result", process: ": what the script was given is in args",
		fetch: network, XMLHttpRequest: network, TextEncoder: bytes, TextDecoder: bytes, use_tool: calling, callTool: calling, mcp: calling,
		setInterval: ": use a loop with await new Promise(done => setTimeout(done, ms))", setImmediate: ": use setTimeout",
		sleep: ": write await new Promise(done => setTimeout(done, ms))",
		URL: ": take it apart with a regular expression", URLSearchParams: ": use encodeURIComponent",
		Intl: ": format numbers and dates with toFixed, padStart and toISOString", crypto: ": use Math.random", performance: ": use Date.now()",
	};
	for (const [name, instead] of Object.entries(words)) {
		const refuse = () => { throw new TypeError(`${name} is not available${instead}`); };
		define(globalThis, {[name]: new Proxy(function () {}, {get: refuse, apply: refuse, construct: refuse})});
	}
}
