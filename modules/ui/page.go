package ui

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/module"
)

// The parts of the page. They are sent as one document, whose content security policy allows only
// this script and style, by their hashes.
var (
	//go:embed page/page.html
	markup string
	//go:embed page/page.css
	style string
	//go:embed page/page.js
	script string
	//go:embed page/views.js
	views string
)

// A document is the page sent to browsers.
type document struct {
	text, policy string // policy is the Content-Security-Policy
}

// newDocument returns the page with the views of a run as it is now, if live is set, and with those
// that need the API, if api is set. The first is shown first.
func newDocument(tabs []module.Tab, live, api bool) document {
	var names, own []string
	code := plain(script) + plain(views)
	for _, t := range tabs {
		switch {
		case t.Live && !live, !t.Live && !api:
			continue
		case t.Live:
			names = append(names, t.Name)
		case t.Name != "":
			own = append(own, t.Name)
		}
		code += plain(t.Script)
	}
	if api {
		names = slices.Concat(names, []string{"servers", "tools"}, own, []string{"decisions", "add", "reads"})
	}
	code += "start();"
	look := plain(style)
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return document{
		text: strings.NewReplacer("{{style}}", look, "{{script}}", code, "{{views}}", strings.Join(names, " ")).Replace(markup),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; script-src " + hash(code) + "; style-src " + hash(look),
	}
}

// plain returns a script or style without indentation, empty lines and comments that fill a line.
func plain(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "/*") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// ServeHTTP sends the page.
func (d document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", d.policy)
	_, _ = io.WriteString(w, d.text) // fails only if the client is gone
}
