// Package catalog holds what is known about every upstream and renders it for the
// host: names, one-line texts, definitions, search, resources and prompts.
//
// [Catalog.Declare] sets the upstreams, [Catalog.Index] and [Catalog.Put] the listing
// of each. After every change the catalogue publishes a new immutable [View]. Readers
// load one atomic pointer and never lock.
//
//	Listing ──index──► serverView  (filter, aliases, overrides applied; its index for
//	                               searches), built by Index
//	serverViews ─────► View        (names, owners, warnings), built per change
//	View ──Texts─────► Describe, Page, Loaded, Found, Unknown …
//
// Entries stay the bytes the upstream sent: package entry reads the few members
// that are indexed and nothing encodes an entry again. The package starts no goroutine, does no
// I/O, and knows nothing of connections. Text of upstreams reaches the host
// only through package display.
//
// The packages below do not use views: entry reads lists, conform and input check entries and
// arguments, search finds tools by words, store keeps listings between runs.
//
// Read next: catalog.go, view.go, serverview.go, describe.go.
package catalog
