package ui

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
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
	//go:embed page/openapi.js
	openapi string
	//go:embed page/live.js
	live string
)

// A document is the page sent to browsers.
type document struct {
	text   string // with {{views}} in the place of the names of views
	policy string // Content-Security-Policy
}

var page = sync.OnceValue(func() document {
	code := script + views + openapi + live
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return document{
		text: strings.NewReplacer("{{style}}", style, "{{script}}", code).Replace(markup),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; script-src " + hash(code) + "; style-src " + hash(style),
	}
})

// The names of views: that of a gateway's run as it is now, and those that need the API.
const (
	liveView = "live"
	apiViews = "servers tools calls decisions add reads"
)

// show returns a handler that sends the page with some views, of which the first is shown first.
func show(views string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page().policy)
		_, _ = w.Write([]byte(strings.Replace(page().text, "{{views}}", views, 1))) // fails only if the client is gone
	}
}
