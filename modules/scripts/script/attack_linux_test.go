package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

// ends runs a script that must end with an error that contains words, and then one that must
// succeed.
func ends(t *testing.T, p *script.Pool, s script.Script, calls calls, words string) *script.Result {
	t.Helper()
	r, err := p.Run(t.Context(), s, calls.answer)
	if _, ok := errors.AsType[*script.Failure](err); !ok || !strings.Contains(err.Error(), words) {
		t.Errorf("%.200s\ngot  %v\nwant %s", s.Source, err, words)
	}
	if got := run(t, p, "return [1, 2].map(n => n + 1).concat(await search('x'))", echo); string(got.Value) != `[2,3,"found x"]` {
		t.Errorf("after %.200s: got %s", s.Source, got.Value)
	}
	return r
}

func TestScriptsThatUseTooMuch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, words string }{
		"endless loop":          {"console.log('before');\nlet n = 0; for (;;) n++", "line 2, column 21: the script was stopped: it used 100ms of processor time"},
		"endless loop, caught":  {"for (;;) { try { for (;;); } catch {} finally { for (;;); } }", "the script was stopped: it used 100ms of processor time"},
		"endless promises":      {"const again = () => Promise.resolve().then(again); await again()", "the script was stopped: it used 100ms of processor time"},
		"memory":                {"const all = []; for (;;) all.push(new Array(1000).fill(all.length))", "the script was stopped: it used more than 256 MB of memory"},
		"a long text":           {"let s = 'x'; for (;;) s += s.toUpperCase().toLowerCase()", "the script was stopped: it used 100ms of processor time"},
		"a large array":         {"return new Array(2 ** 31).fill(1)", "the script was stopped: it used"},
		"recursion":             {"const f = () => f();\nf()", "line 1, column 18: RangeError: more than 3000 functions have called each other"},
		"recursion, natively":   {"const f = () => [1].map(f); f()", "RangeError: more than 3000 functions have called each other"},
		"recursion, in JSON":    {"let a = {}; for (let i = 0; i < 1e6; i++) a = {a}; return JSON.stringify(a).length", "the script was stopped: it used"},
		"recursion of source":   {strings.Repeat("(", 500_000), "the script was stopped: it used more than 256 MB of memory"},
		"a long value":          {"return 'x'.repeat(20e6)", "the value cannot be returned: TypeError: the value is over 16777216 bytes in JSON"},
		"a getter without end":  {"return {get a() { for (;;); }}", "the script was stopped: it used 100ms of processor time"},
		"too long":              {strings.Repeat(" ", 2<<20), "the script has 2097152 bytes, at most 1048576 are run"},
		"an error without end":  {"throw new Error('x'.repeat(1e6))", "xxx …"},
		"a listing without end": {"const a = []; a.length = 2 ** 32 - 1; return a", "over 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			if strings.Contains(c.words, "it used") && !strings.Contains(c.words, "memory") {
				p.CPU = 100 * time.Millisecond
			}
			if mcptest.RaceEnabled && strings.Contains(c.words, "memory") {
				c.words = "the script was stopped: it used" // 10 s, as the detector needs more memory than is allowed
			}
			r := ends(t, p, of(c.source), echo, c.words)
			if strings.Contains(c.source, "before") && r.Printed != "before\n" {
				t.Errorf("got %q", r.Printed)
			}
		})
	}
}

func TestOutputFloods(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for source, dropped := range map[string]int{
		"for (let i = 0; i < 1000; i++) console.log('x'.repeat(99))": 100_000 - 1000,
		"console.log('x'.repeat(1e6))":                               1_000_001 - 1000,
		"console.log('x'.repeat(999))":                               0,
	} {
		s := of(source)
		s.Output = 1000
		r, err := p.Run(t.Context(), s, echo.answer)
		if err != nil || len(r.Printed) != 1000 || r.Dropped != dropped {
			t.Errorf("%s: %v, %d printed, %d dropped", source, err, len(r.Printed), r.Dropped)
		}
	}
}

// A script changes its globals and prototypes. Its calls still have the right names and
// arguments, and the next script is not affected.
func TestPrototypeTricks(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, tricks := range []string{
		"Object.prototype.toJSON = () => 'forged'; Object.prototype.name = 'forged'; Array.prototype.toJSON = () => 'forged'",
		"Object.defineProperty(Object.prototype, 'args', {set() { throw 1 }, get() { return 'forged' }})",
		"JSON.parse = JSON.stringify = () => 'forged'; globalThis.JSON = null",
		"Promise.prototype.then = function () { throw 'forged' }; Promise.resolve = () => 'forged'; globalThis.Promise = null",
		"Array.from = Array.prototype.map = Array.prototype.join = () => { throw 'forged' }; globalThis.Array = null",
		"Error = function () { return {forged: true} }; globalThis.Object = null; console.log = () => {}",
		"call = search = tools = () => 'forged'; globalThis.setTimeout = null",
		"Object.setPrototypeOf(Object.getPrototypeOf(async () => {}), null); String.prototype.toString = () => 'forged'",
		"Function.prototype.call = Function.prototype.apply = () => { throw 'forged' }; Symbol.iterator = null; delete globalThis.undefined",
		"tools.github = 'forged'; delete tools.github; Object.setPrototypeOf(tools, {github: 'forged'})",
	} {
		var seen sync.Map
		c := echo
		c.Call = func(_ context.Context, name string, args json.RawMessage) (json.RawMessage, *script.Failure) {
			seen.Store(name+string(args), true)
			return json.RawMessage(`{"content":[],"structuredContent":{"ok":1}}`), nil
		}
		const source = "const done = call('a/b', {n: 1, '\"}\\n{\"done\":{}}': [2]});\n"
		r, _ := p.Run(t.Context(), of(source+tricks+";\nawait done; return 1"), c.answer)
		if _, ok := seen.Load(`a/b{"n":1,"\"}\n{\"done\":{}}":[2]}`); !ok || len(r.Calls) != 1 {
			t.Errorf("%s: the call was not that: %v", tricks, r.Ran())
		}
		got := run(t, p, "const e = await call('x/y', {}).catch(e => e); return [JSON.stringify({a: [1]}), await tools.github.a({b: 1}), {}.name, String(new Error('e')), e.args, await Promise.resolve(1)]", echo)
		if want := `["{\"a\":[1]}",{"name":"github/a","args":{"b":1}},null,"Error: e",{},1]`; string(got.Value) != want {
			t.Errorf("after %s\ngot  %s\nwant %s", tricks, got.Value, want)
		}
	}
}

func TestAThousandPromises(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	var now, most atomic.Int64
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) }) // as many may run again later
	hold := calls{Call: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, *script.Failure) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == 16 {
			fill()
		}
		select {
		case <-full: // the first calls wait until as many run as may
			return text("done"), nil
		case <-ctx.Done():
			return nil, &script.Failure{Message: "cancelled"}
		}
	}}
	r := run(t, p, `const all = await Promise.allSettled(Array.from({length: 1000}, (_, i) => tools.github.get({i})));
		const failed = all.filter(r => r.status === "rejected");
		return [all.length - failed.length, failed.length, failed[0].reason.message, failed[0].reason.outcome]`, hold)
	if want := `[200,800,"not called: the script has made 200 calls, as many as it may","not_sent"]`; string(r.Value) != want {
		t.Errorf("got %s", r.Value)
	}
	if most.Load() != 16 || len(r.Calls) != 200 {
		t.Errorf("%d at once, %d calls", most.Load(), len(r.Calls))
	}
}

// hang returns calls that end with their context. Each sends its name to begun.
func hang(begun chan<- string) calls {
	return calls{Call: func(ctx context.Context, name string, _ json.RawMessage) (json.RawMessage, *script.Failure) {
		if name == "a/fast" {
			return text("fast"), nil
		}
		begun <- name
		<-ctx.Done()
		return nil, &script.Failure{Message: "cancelled: " + context.Cause(ctx).Error(), Outcome: engine.Unknown}
	}}
}

func TestAScriptThatEndsWhileCallsRun(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	begun := make(chan string, 2)
	r := run(t, p, "call('a/one', {}); call('a/two', {}); await call('a/fast', {}); return 'early'", hang(begun))
	if want := "3 calls ran: a/one (unknown: cancelled: the script has ended), a/two (unknown: cancelled: the script has ended), a/fast (done)"; string(r.Value) != `"early"` || r.Ran() != want {
		t.Errorf("got %s, %s", r.Value, r.Ran())
	}
	for range 20 { // of the same child
		if got := run(t, p, "return await search('x')", echo); string(got.Value) != `"found x"` {
			t.Errorf("got %s", got.Value)
		}
	}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	begun := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	r, err := p.Run(ctx, of("console.log('before'); await call('a/fast', {}); await call('a/slow', {})"), hang(begun).answer)
	if want := "2 calls ran: a/fast (done), a/slow (unknown: cancelled: context canceled)"; !errors.Is(err, context.Canceled) || r.Ran() != want || r.Printed != "before\n" {
		t.Errorf("got %v, %s, %q", err, r.Ran(), r.Printed)
	}
	if _, err := p.Run(ctx, of("return 1"), echo.answer); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := run(t, p, "return 1", echo); string(got.Value) != "1" {
		t.Errorf("got %s", got.Value)
	}
}

func TestTheTimeOfAScript(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	run(t, p, "return 1", echo)
	s := of("await call('a/slow', {})")
	s.Time = time.Second
	begun := make(chan string, 1)
	r := ends(t, p, s, hang(begun), "the script was stopped: it was not done after 1s")
	if want := "1 call ran: a/slow (unknown: cancelled: the script took too long)"; r.Ran() != want {
		t.Errorf("got %s", r.Ran())
	}
}

// The time during which a person is asked does not count.
func TestTheTimeOfAScriptThatAsks(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	s := of("await call('a/slow', {})")
	s.Time = 1500 * time.Millisecond
	r, err := p.Run(t.Context(), s, calls{Call: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, *script.Failure) {
		start, startAgain := script.StopClock(ctx), script.StopClock(ctx)
		select {
		case <-time.After(s.Time):
		case <-ctx.Done():
			return nil, &script.Failure{Message: "cancelled"}
		}
		start()
		start()
		startAgain()
		return text("yes"), nil
	}}.answer)
	if err != nil {
		t.Errorf("%v, %s", err, r.Ran())
	}
	script.StopClock(t.Context())()
}

func TestLargeResults(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for size, want := range map[int]string{
		1 << 20:      `1048576`,
		16<<20 - 100: fmt.Sprint(16<<20 - 100),
		17 << 20:     `"the result has 17825831 bytes, a script reads at most 16777216, done"`,
	} {
		got := run(t, p, "try { return (await call('a/b')).length } catch (e) { return e.message + ', ' + e.outcome }", answering(string(text(strings.Repeat("x", size)))))
		if string(got.Value) != want {
			t.Errorf("got %.200s, want %s", got.Value, want)
		}
	}
	many := strings.Repeat(`{"type":"image","data":"`+strings.Repeat("A", 20<<20)+`"},`, 3) + `{"type":"text","text":"x"}`
	got := run(t, p, "return await call('a/b').then(v => v.length, e => e.message)", answering(`{"content":[`+many+`]}`))
	if string(got.Value) != "4" {
		t.Errorf("got %.200s", got.Value)
	}
	got = run(t, p, "await call('a/b'); return await call('a/b').catch(e => e.message)", answering(`{"content":[`+many+`]}`))
	if want := `"the images and blobs of the script take over 64 MB"`; string(got.Value) != want {
		t.Errorf("got %.200s", got.Value)
	}
}

// Many scripts run at once.
func TestManyScriptsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	var scripts sync.WaitGroup
	for i := range 40 {
		scripts.Go(func() {
			source := fmt.Sprintf("globalThis.mine = (globalThis.mine ?? 0) + %d; await search('x'); return mine", i)
			if got := run(t, p, source, echo); string(got.Value) != fmt.Sprint(i) {
				t.Errorf("got %s, want %d", got.Value, i)
			}
		})
	}
	scripts.Wait()
}
