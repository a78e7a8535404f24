package results

import (
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/schema"
)

// Limits reports whether a config limits some results.
func Limits(cfg *schema.Config) bool {
	return cfg.Catalog.MaxResultChars > 0 || cfg.ExposesScripts() || slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool {
		if s.MaxOutputChars > 0 {
			return true
		}
		for _, o := range s.ToolOverrides {
			if o.MaxOutputChars != nil && *o.MaxOutputChars > 0 {
				return true
			}
		}
		return false
	})
}

// Overrides returns the overrides of an entry with limits of results reduced to at most most
// characters, unless most is 0.
func Overrides(of map[string]schema.ToolOverride, most int) map[string]schema.ToolOverride {
	all := maps.Clone(of)
	for tool, o := range all {
		if o.MaxOutputChars != nil {
			o.MaxOutputChars = new(Lower(*o.MaxOutputChars, most))
			all[tool] = o
		}
	}
	return all
}

// Lower returns the lower one of two limits, where 0 means no limit.
func Lower(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
