package transports

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestFailureText(t *testing.T) {
	cause := errors.New("it ended")
	f := &Failure{Upstream: "git", Code: CodeExited, Outcome: Unknown, Cause: cause, Stderr: "a\nb\n", Hint: "look"}
	if got, want := f.Text(), "git: it ended (outcome unknown: the call may have run)\nhint: look\nlast lines of its stderr:\na\nb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(f.Wire().JSON()), `{"code":5102,"message":"git: it ended (outcome unknown: the call may have run); look","data":{"source":"dynmcp","server":"git","outcome":"unknown","hint":"look","stderr_tail":"a\nb\n"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for outcome, want := range map[Outcome]string{NotSent: "did not run", Executed: "its answer is lost"} {
		f := &Failure{Upstream: "git", Outcome: outcome, Cause: cause}
		if got := f.Text(); !strings.Contains(got, want) {
			t.Errorf("got %q, want it to say %q", got, want)
		}
	}
	if !errors.Is(f, cause) {
		t.Error("the cause is hidden")
	}
}

// Every failure says what to do.
func TestFailureAdvice(t *testing.T) {
	seen := map[string]bool{}
	for code := int64(CodeStartFailed); code <= CodeNoResources; code++ {
		for _, outcome := range []Outcome{NotSent, Unknown, Executed} {
			f := &Failure{Upstream: "u", Code: code, Outcome: outcome, Cause: errors.New("c")}
			advice := f.Advice()
			if !strings.Contains(f.Text(), "\nhint: "+advice) || len(advice) < 15 {
				t.Errorf("%d, %s: got %q", code, outcome, f.Text())
			}
			if outcome != NotSent && code != CodeTooLarge && code != CodeStartFailed && code != CodeBackingOff && !strings.Contains(advice, "check whether it took effect") {
				t.Errorf("%d, %s: got %q", code, outcome, advice)
			}
			seen[advice] = true
		}
	}
	if len(seen) < 7 {
		t.Errorf("got %d different hints, want 7 or more", len(seen))
	}
}

// Most hosts show models only the message of an error, and some cut it.
func TestMessageSaysWhetherTheCallRan(t *testing.T) {
	for code := int64(CodeStartFailed); code <= CodeAmbiguous; code++ {
		for _, outcome := range []Outcome{NotSent, Unknown, Executed} {
			for _, cause := range []string{"c", strings.Repeat("long ", 100)} {
				f := &Failure{Upstream: "server", Code: code, Outcome: outcome, Cause: errors.New(cause)}
				for name, e := range map[string]*wire.Error{"a failure": f.Wire(), "a reserved failure": f.Reserved("").Wire(), "cut off": ShuttingDown(outcome), "refused": OutcomeError(code, "c", outcome)} {
					read := e.Message[:min(len(e.Message), readable)]
					if !strings.Contains(read, outcome.text()) || !strings.Contains(string(e.Data), fmt.Sprintf(`"outcome":%q`, outcome)) {
						t.Errorf("%s, %d, %s: got %q, %s", name, code, outcome, read, e.Data)
					}
					if strings.HasPrefix(name, "a ") && !strings.Contains(read, f.Advice()) && !strings.Contains(read, f.Reserved("").Advice()) {
						t.Errorf("%s, %d, %s: got %q, want %q in it", name, code, outcome, read, f.Advice())
					}
				}
				if !strings.Contains(f.Wire().Message, cause) {
					t.Errorf("%d, %s: got %q without the cause", code, outcome, f.Wire().Message)
				}
			}
		}
	}
}

func TestWireError(t *testing.T) {
	upstream := wire.ParseError([]byte(`{"message":"m","code":-1,"x":1.0}`))
	for _, test := range []struct {
		err  error
		want string
	}{
		{upstream, `{"message":"m","code":-1,"x":1.0}`},
		{fmt.Errorf("wrapped: %w", upstream), `{"message":"m","code":-1,"x":1.0}`},
		{&Failure{Upstream: "u", Code: 5103, Outcome: NotSent, Cause: errors.New("c")}, `{"code":5103,"message":"u: c (outcome not_sent: the call did not run); if it needs longer to start, raise its \"load_timeout\"; the next call tries again","data":{"source":"dynmcp","server":"u","outcome":"not_sent","hint":"if it needs longer to start, raise its \"load_timeout\"; the next call tries again"}}`},
		{errors.New("plain"), `{"code":-32603,"message":"plain"}`},
	} {
		if got := string(WireError(test.err).JSON()); got != test.want {
			t.Errorf("%v: got %s, want %s", test.err, got, test.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 日本":          "plain é 日本",
		"\x1b[31mred\x07\r\n": "\\u{1b}[31mred\\u{7}\\u{d}\n",
		"\u202eevil\u200b":    "\\u{202e}evil\\u{200b}",
		"\xff\xfe":            "\ufffd\ufffd",
	} {
		if got := Printable([]byte(text), 100); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Printable([]byte("0123456789"), 4); got != "0123…" {
		t.Errorf("got %q", got)
	}
}
