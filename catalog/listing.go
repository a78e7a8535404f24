package catalog

import "encoding/json"

// Listing is everything one upstream said about itself, verbatim and in its
// order. It is immutable once given to [Catalog.Put].
type Listing struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	Capabilities, Info json.RawMessage // as in the answer to initialize
	Instructions       string

	// Stored says that the listing comes from an earlier run. Its entries are
	// known and callable, but a lazy server still counts as not loaded.
	Stored bool
}
