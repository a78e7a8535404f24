package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

// Printed text is a prefix of all that the script prints, as long as the limit permits, whatever the
// lines are; the rest is counted, and the script goes on.
func TestPrintedTextIsAPrefix(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	check := func(limit int, lines []string) {
		t.Helper()
		list, _ := json.Marshal(lines)
		s := of(fmt.Sprintf(`for (const line of %s) console.log(line); return "the end"`, list))
		s.Output = limit
		r, err := p.Run(t.Context(), s, echo.answer)
		whole := strings.Join(lines, "\n") + "\n"
		if len(lines) == 0 {
			whole = ""
		}
		full := min(limit, len(whole))
		if err != nil || string(r.Value) != `"the end"` || !strings.HasPrefix(whole, r.Printed) || len(r.Printed) > full || len(r.Printed) < full-3 || len(r.Printed)+r.Dropped != len(whole) {
			t.Fatalf("limit %d, lines %.300s: %v, %d printed and %d dropped of %d, value %s", limit, list, err, len(r.Printed), r.Dropped, len(whole), r.Value)
		}
	}
	check(1000, []string{})
	check(1000, []string{strings.Repeat("a", 2000), "b", "c"})
	check(1000, []string{strings.Repeat("a", 999), "b"})
	check(1000, []string{strings.Repeat("a", 1000), "", strings.Repeat("b", 3000)})
	check(10, []string{"éééééé", "é"})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		limit := 1 + random.IntN(200)
		lines := make([]string, random.IntN(8))
		for i := range lines {
			for range random.IntN(1 + 2*limit>>random.IntN(4)) {
				lines[i] += []string{"a", "é", "€", "😀"}[random.IntN(4)]
			}
		}
		check(limit, lines)
	}
}

// No member of a value is there twice: it would be ambiguous as an argument.
func TestMembersAreWrittenOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, value := range []string{
		`new (class E extends Error { constructor(m) { super(m); this.name = "E" } })("x")`,
		`new (class E extends Error { constructor(m) { super(m); this.name = "E"; this.message = "y"; this.code = 5 } })("x")`,
		`Object.assign(new TypeError("x"), {name: "n", message: "m", cause: {name: "c"}, extra: [1]})`,
		`new AggregateError([new Error("a")], "x")`,
		`Object.assign(new Map([["name", 1], ["name", 2]]), {name: 3})`,
		`{name: 1, ["na" + "me"]: 2, message: new Error("z")}`,
		`(() => { try { null.x } catch (e) { e.name = "own"; return e } })()`,
		`await call("github/x", {}).catch(e => Object.assign(e, {name: e.name, server: e.server}))`,
	} {
		var sent json.RawMessage
		s := of(`const v = ` + value + `; await tools.github.x({v}); return v`)
		r, err := p.Run(t.Context(), s, func(_ context.Context, call script.Call) (json.RawMessage, *script.Failure) {
			if sent = wire.Get(call.Args, "v"); sent == nil {
				return nil, &script.Failure{Message: "no", Outcome: "done"}
			}
			return text("x"), nil
		})
		for what, text := range map[string]json.RawMessage{"returned": r.Value, "sent": sent} {
			if err != nil || !wire.Valid(text) || twice(text) != "" {
				t.Errorf("%s, %s: %v, %s has %q twice", value, what, err, text, twice(text))
			}
		}
	}
}

// twice returns the name of a member that an object in a value has twice, "" if there is none.
func twice(value json.RawMessage) string {
	seen := map[string]bool{}
	for key, member := range wire.Members(value) {
		if name := string(key); seen[name] {
			return name
		}
		seen[string(key)] = true
		if name := twice(member); name != "" {
			return name
		}
	}
	for element := range wire.Elements(value) {
		if name := twice(element); name != "" {
			return name
		}
	}
	return ""
}
