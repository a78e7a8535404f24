package redact_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/redact"
)

const secret = `s3cr3t/"pä+ss\` + "\t" + `<wörd>&=`

// encodings are the forms in which programs print a value.
var encodings = map[string]func(string) string{
	"plain":       func(v string) string { return v },
	"query":       url.QueryEscape,
	"path":        url.PathEscape,
	"query lower": func(v string) string { return strings.ToLower(url.QueryEscape(strings.ToLower(v))) },
	"json":        func(v string) string { b, _ := json.Marshal(v); return string(b) },
	"go":          strconv.Quote,
	"go ascii":    strconv.QuoteToASCII,
	"go twice":    func(v string) string { return strconv.Quote(strconv.Quote(v)) },
	"hex":         func(v string) string { return hex.EncodeToString([]byte(v)) },
	"HEX":         func(v string) string { return fmt.Sprintf("%X", v) },
	"base64":      func(v string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + v + "!")) },
	"base64 url":  func(v string) string { return base64.URLEncoding.EncodeToString([]byte("a" + v)) },
}

func TestEveryFormIsHidden(t *testing.T) {
	for name, encode := range encodings {
		value := secret
		if name == "query lower" {
			value = strings.ToLower(secret)
		}
		var r redact.Redactor
		r.Add(value)
		text := encode(value)
		if got := r.String("before " + text + " after"); !strings.Contains(got, redact.Mark) || strings.Contains(got, text) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

// Programs of other languages escape other characters in URLs than Go does.
func TestURLsOfOtherLanguages(t *testing.T) {
	const password = "pa$$ (wörd)!~*'/+=&@:;,?"
	for by, text := range map[string]string{
		"encodeURIComponent of JavaScript": "pa%24%24%20(w%C3%B6rd)!~*'%2F%2B%3D%26%40%3A%3B%2C%3F",
		"encodeURI of JavaScript":          "pa$$%20(w%C3%B6rd)!~*'/+=&@:;,?",
		"URLSearchParams of JavaScript":    "pa%24%24+%28w%C3%B6rd%29%21%7E*%27%2F%2B%3D%26%40%3A%3B%2C%3F",
		"quote of Python":                  "pa%24%24%20%28w%C3%B6rd%29%21~%2A%27/%2B%3D%26%40%3A%3B%2C%3F",
		"quote_plus of Python":             "pa%24%24+%28w%C3%B6rd%29%21~%2A%27%2F%2B%3D%26%40%3A%3B%2C%3F",
	} {
		var r redact.Redactor
		r.Add(password)
		if got := r.String("https://example.com/?key=" + text); got != "https://example.com/?key="+redact.Mark {
			t.Errorf("%s: got %s", by, got)
		}
	}
}

// The base64 form of a secret is hidden at every offset in a longer text.
func TestBase64AtEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[!-~]{6,40}`).Draw(t, "value")
		before := rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "after")
		var r redact.Redactor
		r.Add(value)
		code := base64.StdEncoding.EncodeToString([]byte(before + value + after))
		// Each character stands for 6 bits. Those of the value alone are hidden.
		from, to := (8*len(before)+5)/6, 8*(len(before)+len(value))/6
		if got, want := r.String(code), code[:from]+redact.Mark+code[to:]; got != want {
			t.Fatalf("%s of %q became %s, want %s", code, value, got, want)
		}
	})
}

// The first and the last letters and digits, and what else an encoding keeps, are not escaped.
func TestURLsKeepLettersAndDigits(t *testing.T) {
	const password = "/AZ/az/09/-/"
	var r redact.Redactor
	r.Add(password)
	for _, text := range []string{url.QueryEscape(password), strings.ToLower(url.QueryEscape("/")) + "AZ%2faz%2f09%2f-%2f", password} {
		if got := r.String(text); got != redact.Mark {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestShortValuesStay(t *testing.T) {
	var r redact.Redactor
	r.Add("true", "8080", "")
	if got := r.String("true 8080"); got != "true 8080" {
		t.Errorf("got %q", got)
	}
}

func TestLinesOfAKey(t *testing.T) {
	var r redact.Redactor
	r.Add("-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----\n")
	if got := r.String("line 2: MIIEvQIBADANBg"); got != "line 2: "+redact.Mark {
		t.Errorf("got %q", got)
	}
}

func TestTheLongestWins(t *testing.T) {
	var r redact.Redactor
	r.Add("secret", "secret-and-more")
	if got := r.String("secret-and-more"); got != redact.Mark {
		t.Errorf("got %q", got)
	}
}

func TestNilHidesNothing(t *testing.T) {
	var r *redact.Redactor
	if got := r.String("text"); got != "text" {
		t.Errorf("got %q", got)
	}
	if safe, rest := r.Split("text"); safe != "text" || rest != "" {
		t.Errorf("got %q, %q", safe, rest)
	}
}

// Split hides a secret wherever the text is cut.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r redact.Redactor
		r.Add("hunter2-hunter2")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"hunter2-hunter2", "hunter", "x", " and "}), 1, 12).Draw(t, "text"), "")
		var out strings.Builder
		rest := ""
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "cut")
			var safe string
			safe, rest = r.Split(rest + text[:n])
			out.WriteString(safe)
			text = text[n:]
		}
		out.WriteString(r.String(rest))
		if strings.Contains(out.String(), "hunter2-hunter2") {
			t.Fatalf("got %s", out.String())
		}
	})
}

func TestALogger(t *testing.T) {
	var r redact.Redactor
	r.Add(secret)
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(r.Writer(&b), nil))
	log.Info("failed", "err", fmt.Errorf("start %q: %s", secret, secret), "list", []string{secret})
	if strings.Contains(b.String(), "s3cr3t") || strings.Count(b.String(), redact.Mark) != 3 {
		t.Errorf("got %s", b.String())
	}
}

// An error of the writer below is an error of the whole text.
func TestAWriterThatFails(t *testing.T) {
	var r redact.Redactor
	broken := errors.New("broken")
	out, in := io.Pipe()
	out.CloseWithError(broken)
	if n, err := r.Writer(in).Write([]byte("text")); n != 0 || err != broken {
		t.Errorf("got %d, %v", n, err)
	}
}

// Of rotated values only the newest are hidden, so that the redactor does not grow.
func TestRotatedValues(t *testing.T) {
	var r redact.Redactor
	r.Add("fixed-secret")
	token := func(n int) string { return fmt.Sprintf("token-number-%04d", n) }
	for n := range 1000 {
		r.Rotate("web", token(n), "refresh-that-stays")
	}
	for _, secret := range []string{"fixed-secret", "refresh-that-stays", token(999), token(998)} {
		if got := r.String("a " + secret); got != "a "+redact.Mark {
			t.Errorf("%s: got %q", secret, got)
		}
	}
	if got := r.String(token(0)); got != token(0) {
		t.Errorf("the oldest is still kept: %q", got)
	}
}

// The newest tokens of many slots are hidden after every change, and of each only a few are kept.
func TestTokensOfManySlots(t *testing.T) {
	var r redact.Redactor
	r.Add("password-of-the-config")
	token := func(slot, n int) string {
		return fmt.Sprintf("token-%d-%d-", slot, n) + strings.Repeat("x", slot%7) + "end"
	}
	const slots, rotations = 20, 30
	for slot := range slots {
		r.Rotate(fmt.Sprint(slot), token(slot, 0))
	}
	for n := range rotations {
		for slot := range slots {
			r.Rotate(fmt.Sprint(slot), token(slot, n))
			if text := "has " + token(slot, n) + " of " + token((slot+1)%slots, max(0, n-1)) + " and password-of-the-config"; r.String(text) != "has [redacted] of [redacted] and [redacted]" {
				t.Fatalf("slot %d, rotation %d: %s", slot, n, r.String(text))
			}
		}
	}
	for range 300 { // so that all is computed again
		r.Rotate("last", rand.Text())
	}
	if old := token(3, 0); r.String(old) != old {
		t.Errorf("a token of long ago is still hidden: %s", r.String(old))
	}
	if safe, rest := r.Split("x token-1-29-xe"); safe+rest != "x token-1-29-xe" || !strings.HasPrefix("x token-1-29-xe", safe) || strings.Contains(safe, "token-1-29-xe") {
		t.Errorf("the beginning of a token: %q, %q", safe, rest)
	}
}
