// Package webhook tells addresses of the config what happens in a run: calls that failed, were denied or
// slow, and tools that changed.
package webhook

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has the key webhooks, which sends events of runs that serve hosts, and the verb webhook.
var Module = module.Module{
	Name:  "webhook",
	Keys:  []schema.Section{schema.SectionOf[Keys]("webhook")},
	Verbs: []cli.Verb{verb},
	Start: start,
}

// Keys are the keys of the document.
type Keys struct {
	// Addresses that are told what happens, by a POST for each event. See docs/webhooks.md.
	Webhooks []Webhook `json:"webhooks" default:"[]" variables:"true" example:"[{url: \"https://hooks.example.com/dynmcp\", secret: \"${TOKEN}\"}]"`
}

// Webhook is an address, and what it is told.
type Webhook struct {
	// The address, http or https. It is treated as a secret, since many addresses have one in their path.
	URL string `json:"url" required:"true" secret:"true" nonblank:"true" example:"https://hooks.example.com/dynmcp"`
	// The events that are sent.
	On []string `json:"on" enum:"failed,denied,slow,changed" default:"[failed, denied, changed]" example:"[denied, changed]"`
	// How long a call takes at least to be a slow one.
	Slow time.Duration `json:"slow" min:"1ms" default:"30s" example:"5s"`
	// The key that signs requests: a text, or whsec_ and base64. Left out, they are not signed.
	Secret string `json:"secret" secret:"true" nonblank:"true" example:"${TOKEN}"`
}

// Check checks the addresses and the keys.
func (k *Keys) Check(fail func(what, hint string, at ...any)) {
	for i, w := range k.Webhooks {
		if u, err := url.Parse(w.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			fail("this is not the address of a web server", "write one such as https://hooks.example.com/dynmcp", "webhooks", i, "url")
		}
		if len(w.On) == 0 {
			fail("nothing is sent to this address", "name an event: failed, denied, slow or changed", "webhooks", i, "on")
		}
		if _, err := w.key(); err != nil {
			fail("what follows whsec_ is not base64", "copy the key once more", "webhooks", i, "secret")
		}
	}
}

// key returns the bytes of the secret.
func (w Webhook) key() ([]byte, error) {
	if text, ok := strings.CutPrefix(w.Secret, "whsec_"); ok {
		return base64.StdEncoding.DecodeString(text)
	}
	return []byte(w.Secret), nil
}

// name returns the address for people: its host.
func (w Webhook) name() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return "the webhook"
	}
	return u.Host
}
