package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	zalando "github.com/zalando/go-keyring"
	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

// The test binary is also the command of ${cmd:…}.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "vault" {
		vault(os.Args[2:])
	}
	os.Setenv("DYNMCP_KEYRING", "off")
	zalando.MockInit() // never the keyring of the user who runs the tests
	goleak.VerifyTestMain(m)
}

func vault(args []string) {
	switch args[0] {
	case "count": // appends to a file, and prints what it has then
		file, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprint(file, "CANARY")
			file.Close()
		}
		text, _ := os.ReadFile(args[1])
		fmt.Printf("%s\r\n", text)
	case "hang":
		time.Sleep(time.Hour) // until it is killed
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 4096)); err != nil {
				os.Exit(1)
			}
		}
	case "wait": // writes a file, and ends once there is another
		os.WriteFile(args[1], nil, 0o600)
		for _, err := os.Stat(args[2]); err != nil; _, err = os.Stat(args[2]) {
			time.Sleep(time.Millisecond)
		}
		fmt.Print("CANARY")
	case "print":
		fmt.Print(strings.Join(args[1:], "|"))
	case "fail":
		fmt.Print("CANARY of stdout")
		fmt.Fprintf(os.Stderr, "CANARY in an early line\n%s\x1b[31m CANARY of stdout %s other-CANARY ghp_CANARY9876543210987654321098765432\n", strings.Repeat("x ", 20), os.Getenv("VAULT_TOKEN"))
		os.Exit(3)
	case "long":
		fmt.Fprint(os.Stderr, strings.Repeat("CANARY", 2000))
		os.Exit(1)
	}
	os.Exit(0)
}

func command(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	quoted := []string{"cmd:'" + self + "'", "vault"}
	for _, arg := range args {
		quoted = append(quoted, "'"+arg+"'")
	}
	return strings.Join(quoted, " ")
}

func failure(t *testing.T, r *secretref.Resolver, reference string) *secretref.Error {
	t.Helper()
	_, err := r.Resolve(t.Context(), Module.Secrets, reference)
	why, ok := errors.AsType[*secretref.Error](err)
	if !ok {
		t.Fatalf("%s: got error %v", reference, err)
	}
	if strings.Contains(why.Error(), "CANARY") {
		t.Errorf("%s shows a secret: %v", reference, why)
	}
	return why
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \t\n", nil},
		{"op read op://x/y", []string{"op", "read", "op://x/y"}},
		{"  a   b\tc\nd ", []string{"a", "b", "c", "d"}},
		{`a 'b c' "d e"`, []string{"a", "b c", "d e"}},
		{`a '' "" b`, []string{"a", "", "", "b"}},
		{`a'b'"c"d`, []string{"abcd"}},
		{`'a\b' "a\b\"\\\$" a\ b\'`, []string{`a\b`, `a\b"\$`, `a b'`}},
		{"$HOME ~ * `x` $(y) | ; & > z #", []string{"$HOME", "~", "*", "`x`", "$(y)", "|", ";", "&", ">", "z", "#"}},
		{"ä 'ö ü'", []string{"ä", "ö ü"}},
		{"op read \\\n  op://x/y \\\n", []string{"op", "read", "op://x/y"}},
		{"a\\\nb \"c\\\nd\" 'e\\\nf'", []string{"ab", "cd", "e\\\nf"}},
	} {
		if got, err := secretref.Split(test.in); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
	}
	for _, in := range []string{`'a`, `"a`, `a\`, `"a\"`} {
		if got, err := secretref.Split(in); err == nil {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestCommandRunsOnce(t *testing.T) {
	var hide redact.Redactor
	r := &secretref.Resolver{Hide: &hide}
	reference := command(t, "count", filepath.Join(t.TempDir(), "file"))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got, err := r.Resolve(context.Background(), Module.Secrets, reference); got != "CANARY" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	group.Wait()
	if got := hide.String("a CANARY"); got != "a "+redact.Mark {
		t.Errorf("shown: %s", got)
	}
	r.Forget()
	if got, err := r.Resolve(t.Context(), Module.Secrets, reference); got != "CANARYCANARY" || err != nil {
		t.Errorf("after Forget: %q, %v", got, err)
	}
}

func TestCommandsThatFail(t *testing.T) {
	t.Setenv("VAULT_TOKEN", "environment CANARY")
	var hide redact.Redactor
	hide.Add("other-CANARY")
	r := &secretref.Resolver{Hide: &hide}
	why := failure(t, r, command(t, "fail"))
	if !strings.HasPrefix(why.Hint, "exit status 3, and it said: x x") || strings.Count(why.Hint, redact.Mark) != 4 || strings.Contains(why.Hint, "\x1b") {
		t.Errorf("got %q", why.Hint)
	}
	if got := hide.String("CANARY of stdout"); got != redact.Mark {
		t.Errorf("what it printed is not hidden: %s", got)
	}
	if why := failure(t, r, command(t, "long")); why.Hint != "exit status 1" {
		t.Errorf("a cut line: %q", why.Hint)
	}
	for reference, want := range map[string]string{
		command(t, "print"):      "it is empty",
		command(t, "flood"):      "it printed more than 65536 bytes",
		"cmd:no-such-vault read": `there is no "no-such-vault" on the PATH`,
		"cmd:op 'read":           "a quote is not closed",
		"cmd: ":                  "there is no command in it",
		"cmd:''":                 "there is no command in it",
	} {
		if why := failure(t, r, reference); why.Hint != want {
			t.Errorf("%s: got %q, want %q", reference, why.Hint, want)
		}
	}
}

func TestCommandHasATimeLimit(t *testing.T) {
	_, err := printed{limit: time.Millisecond}.Resolve(t.Context(), strings.TrimPrefix(command(t, "hang"), "cmd:"), nil)
	if why, ok := errors.AsType[*secretref.Error](err); !ok || why.Hint != "it did not end within 1ms" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(secretref.Resolver).Resolve(ctx, Module.Secrets, command(t, "hang")); err == nil {
		t.Error("the command outlived its context")
	}
}

func TestNoShellReadsACommand(t *testing.T) {
	r := &secretref.Resolver{}
	if got, err := r.Resolve(t.Context(), Module.Secrets, command(t, "print", "$HOME", "*", "a b; c")); got != "$HOME|*|a b; c" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKeyring(t *testing.T) {
	zalando.MockInit() // an empty one
	r := &secretref.Resolver{}
	if why := failure(t, r, "keyring:TOKEN"); !strings.Contains(why.Hint, "(DYNMCP_KEYRING is off): take a variable of .env, ${cmd:COMMAND} or ${file:PATH}") {
		t.Errorf("without a keyring: %v", why)
	}
	t.Setenv("DYNMCP_KEYRING", "on")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	if why := failure(t, r, "keyring:TOKEN"); why.Hint != "store it with: dynmcp secret set TOKEN" {
		t.Errorf("without the secret: %v", why)
	}
	if err := keyring.Set(secret.Service, "TOKEN", "CANARY"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve(t.Context(), Module.Secrets, "keyring:TOKEN"); got != "CANARY" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	failure(t, r, "keyring:two words")
}

// A caller that gives up does not end the lookup for another one.
func TestOneCallerGivesUp(t *testing.T) {
	r := &secretref.Resolver{Hide: &redact.Redactor{}}
	dir := t.TempDir()
	started, finish := filepath.Join(dir, "started"), filepath.Join(dir, "finish")
	reference := fmt.Sprintf("cmd:'%s' vault wait '%s' '%s'", os.Args[0], started, finish)
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := r.Resolve(ctx, Module.Secrets, reference)
		first <- err
	}()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	second := make(chan string, 1)
	other := &signalContext{Context: t.Context(), asked: make(chan struct{})}
	go func() {
		value, err := r.Resolve(other, Module.Secrets, reference)
		second <- fmt.Sprint(value, err)
	}()
	<-other.asked // it waits for the lookup
	giveUp()
	if err := <-first; err == nil {
		t.Error("the first caller got a value after it gave up")
	}
	if err := os.WriteFile(finish, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-second; got != "CANARY<nil>" {
		t.Errorf("the second caller got %s", got)
	}
}

// A signalContext tells when its Done is first asked for.
type signalContext struct {
	context.Context
	once  sync.Once
	asked chan struct{}
}

func (c *signalContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.asked) })
	return c.Context.Done()
}
