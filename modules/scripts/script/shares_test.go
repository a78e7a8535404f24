package script_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

// A crowd are scripts of users that run until the test ends.
type crowd struct {
	t     *testing.T
	pool  *script.Pool
	begun sync.Map // [2]any{user, number}
	all   sync.WaitGroup
	ctx   context.Context
}

func newCrowd(t *testing.T) *crowd {
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{t: t, pool: newPool(t), ctx: ctx}
	t.Cleanup(func() { cancel(); c.all.Wait() })
	return c
}

// add starts scripts of a user; each makes a call that hold answers.
func (c *crowd) add(user string, n int, source string, hold func(ctx context.Context)) {
	for i := range n {
		c.all.Go(func() {
			s := of(source)
			s.User = user
			_, _ = c.pool.Run(c.ctx, s, func(ctx context.Context, _ script.Call) (json.RawMessage, *script.Failure) {
				c.begun.Store([2]any{user, i}, true)
				hold(ctx)
				return text("x"), nil
			})
		})
	}
}

func (c *crowd) count(user string) (n int) {
	c.begun.Range(func(key, _ any) bool {
		if key.([2]any)[0] == user {
			n++
		}
		return true
	})
	return n
}

func (c *crowd) has(user string, want int) {
	c.t.Helper()
	mcptest.Eventually(c.t, "the scripts of "+user+" run", func() bool { return c.count(user) == want })
}

// runs reports whether a script of a user runs to its end.
func (c *crowd) runs(user string) bool {
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	s := of(`return 1`)
	s.User = user
	_, err := c.pool.Run(ctx, s, echo.answer)
	return err == nil
}

const oneCall = `await tools.github.x({}); return 1`

func forever(ctx context.Context) { <-ctx.Done() }

// Each user has the places that others leave: one that takes all it can get takes half of them, and
// the scripts of others start at once.
func TestAUserLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	for _, step := range []struct {
		user string
		want int
	}{{"ann", 8}, {"bob", 4}, {"carol", 2}, {"dave", 1}} {
		c.add(step.user, 20, oneCall, forever)
		c.has(step.user, step.want)
		if step.user != "dave" && !c.runs("erin") {
			t.Errorf("with the scripts of %s, no other runs", step.user)
		}
	}
	for user, want := range map[string]int{"ann": 8, "bob": 4, "carol": 2, "dave": 1} {
		if got := c.count(user); got != want {
			t.Errorf("%s runs %d scripts, want %d", user, got, want)
		}
	}
}

// A script that waits for a person, or for a timer, has no place. It goes on when it is time even if
// all places are taken.
func TestAScriptThatWaitsHasNoPlace(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	asked := make(chan struct{})
	c.add("asking", 9, oneCall, func(ctx context.Context) {
		defer script.StopClock(ctx)()
		select {
		case <-asked:
		case <-ctx.Done():
		}
	})
	c.has("asking", 9)
	c.add("sleeping", 9, `await tools.github.x({}); await new Promise(r => setTimeout(r, 1e7))`, func(context.Context) {})
	c.has("sleeping", 9)
	var done sync.WaitGroup
	done.Go(func() {
		s := of(`await new Promise(r => setTimeout(r, 100)); await tools.github.x({}); return 1`)
		s.User = "waking"
		if r, err := c.pool.Run(c.ctx, s, echo.answer); err != nil || string(r.Value) != "1" {
			t.Errorf("a script that wakes: %s, %v", r.Value, err)
		}
	})
	c.add("ann", 20, oneCall, forever)
	c.has("ann", 8)
	close(asked)
	done.Wait()
}

// The memory of all processes counts for the users whose scripts they run. A script that would take
// more than its user's share is stopped, and one of another user goes on.
func TestMemoryOfScriptsIsCounted(t *testing.T) {
	t.Parallel()
	p, budget := newPool(t), membudget.New(160<<20, nil)
	run := func(user, source string, answer script.Answerer) error {
		s := of(source)
		s.User, s.Memory = user, budget.Open(user, nil)
		_, err := p.Run(t.Context(), s, answer)
		return err
	}
	const hoard = `const all = []; for (;;) { all.push("x".repeat(1e6) + all.length); if (all.length % 10 == 0) await tools.github.x({}) }`
	held := int64(0)
	err := run("ann", hoard, func(context.Context, script.Call) (json.RawMessage, *script.Failure) {
		held = max(held, budget.Total())
		if err := run("bob", `return "x".repeat(1e5)`, echo.answer); err != nil {
			t.Errorf("beside it: %v", err)
		}
		return text("x"), nil
	})
	if err == nil || !strings.Contains(err.Error(), `of "max_held_bytes"`) || held < 40<<20 || held > 120<<20 {
		t.Errorf("got %v, %d bytes were held", err, held)
	}
	if got := budget.Total(); got != 0 {
		t.Errorf("%d bytes are held at the end", got)
	}

	small := membudget.New(1<<20, nil)
	s := of(`return 1`)
	s.Memory = small.Open("", nil)
	if _, err := p.Run(t.Context(), s, echo.answer); err == nil || !strings.Contains(err.Error(), "was not run") {
		t.Errorf("without room: %v", err)
	}
}
