package ui

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
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
)

// A document is the page sent to browsers.
type document struct {
	text   []byte
	policy string // Content-Security-Policy
}

var page = sync.OnceValue(func() document {
	code := script + views
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return document{
		text: []byte(strings.NewReplacer("{{style}}", style, "{{script}}", code).Replace(markup)),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; script-src " + hash(code) + "; style-src " + hash(style),
	}
})
