package catalog

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/display"
)

// lineWidth is the longest text of one tool's line, in UTF-16 units.
const lineWidth = display.LineWidth

// Units counts UTF-16 units, the measure by which hosts cut.
func Units[T ~string | ~[]byte](s T) int { return display.Units(s) }

func cut(s string, max int) string { return display.Cut(s, max) }

// Prefix returns the longest start of s with at most max UTF-16 units.
func Prefix(s string, max int) string { return display.Prefix(s, max) }

func fold(s string) string { return display.Fold(s) }

func clean(s string) string { return display.Clean(s) }

func invisible(r rune) bool { return display.Invisible(r) }

func escape(s string) string { return display.Escape(s) }

func unescape(s string) string { return display.Unescape(s) }

func summary(s string, max int) string { return display.Summary(s, max) }

func firstLine(texts ...string) string { return display.FirstLine(texts...) }

func quote(s string) string { return display.Quote(s) }

func shown(name string) string { return display.Name(name) }

func visible(raw json.RawMessage) string { return display.JSON(raw) }

func plural(n int, thing string) string { return display.Plural(n, thing) }
