// Package catalog holds what is known about every upstream and says it to the
// host: names, one-line texts, definitions, search, resources and prompts.
//
// A [Catalog] is told what exists ([Catalog.Declare]) and what each upstream
// listed ([Catalog.Index], [Catalog.Put]); after every change it publishes a new immutable
// [View]. Readers load one atomic pointer and never lock.
//
//	Listing ──index──► part (one server: filters, aliases, overrides applied,
//	                   search postings)          built by Index
//	parts ──merge────► View (names, owners, warnings)   built per change
//	View ──render────► Describe, Page, Details, Loaded, Unknown …
//
// Entries stay the bytes the upstream sent: the package reads the few members
// it indexes and never encodes an entry again. It starts no goroutine, does no
// I/O, and knows nothing of connections. Text of upstreams reaches the host
// only through package display.
//
// Read next: catalog.go, view.go, describe.go.
package catalog
