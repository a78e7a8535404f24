package catalog

import "encoding/json"

type index struct{ listing *Listing }
type part struct {
	server Server
	index  *index
}

func newIndex(l *Listing) *index       { return nil }
func newPart(s Server, x *index) *part { return &part{server: s, index: x} }
func newView(parts []*part) *View      { return &View{} }

// View is an immutable picture of the catalogue.
type View struct{}

// Tool is one tool as a host may name it.
type Tool struct {
	Name        string // exposed: server/tool, or bare
	Server      string
	Upstream    string // its name at the upstream
	Leaf        string // Upstream or its alias: the last part of Name
	Direct      string // its name on the direct surface: server__tool
	Title       string
	Summary     string // one line, clean of invisible characters, not escaped
	Description string
	Raw         json.RawMessage // the upstream's object, verbatim

	InputSchema, OutputSchema, Annotations json.RawMessage // parts of Raw; nil if absent
}

// ServerInfo says what is known of one server.
type ServerInfo struct {
	Name, Description, Note              string
	Lazy                                 bool
	Known                                bool // it has a listing, perhaps a stored one
	Loaded                               bool // its tools are offered as loaded
	Tools, Prompts, Resources, Templates int  // shown, after filters

	Instructions       string
	Capabilities, Info json.RawMessage
}

// Page is one page of a listing, as text and as structured content.
type Page struct {
	Text       string
	Structured json.RawMessage
	Next       int // offset of the next page; 0 after the last
}

// Match is one result of a search, best first.
type Match struct {
	Tool  *Tool
	Score float64
}

func (v *View) Tool(name string) (*Tool, bool)                                 { return nil, false }
func (v *View) Direct(name string) (*Tool, bool)                               { return nil, false }
func (v *View) Tools() []*Tool                                                 { return nil }
func (v *View) Server(name string) (ServerInfo, bool)                          { return ServerInfo{}, false }
func (v *View) Servers() []ServerInfo                                          { return nil }
func (v *View) Describe(maxChars int) string                                   { return "" }
func (v *View) Instructions(maxChars int) string                               { return "" }
func (v *View) Details(t *Tool) string                                         { return "" }
func (v *View) Definition(t *Tool) json.RawMessage                             { return t.Raw }
func (v *View) DefinitionAs(t *Tool, name string) json.RawMessage              { return t.Raw }
func (v *View) Page(server string, offset, limit int) (Page, bool)             { return Page{}, false }
func (v *View) Find(query string, limit int) []Match                           { return nil }
func (v *View) Found(query string, limit int) Page                             { return Page{} }
func (v *View) Nearest(name string, n int) []*Tool                             { return nil }
func (v *View) Unknown(name string) string                                     { return "" }
func (v *View) UnknownServer(name string) string                               { return "" }
func (v *View) Loaded(server string) (structured json.RawMessage, text string) { return nil, "" }
func (v *View) Resources() []json.RawMessage                                   { return nil }
func (v *View) Templates() []json.RawMessage                                   { return nil }
func (v *View) Prompts() []json.RawMessage                                     { return nil }
func (v *View) ResourceOwner(uri string) (server string, ok bool)              { return "", false }
func (v *View) PromptOwner(name string) (server string, ok bool)               { return "", false }
func (v *View) Collisions() []string                                           { return nil }
func (v *View) Warnings() []string                                             { return nil }
func (v *View) Complete() bool                                                 { return true }
func (v *View) Capabilities(unknown bool) json.RawMessage                      { return nil }
