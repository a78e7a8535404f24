package rules

import (
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/schema"
)

// Hidden are the tools that the rules refuse to a principal, whatever the host, the surface and the
// arguments of a call are.
type Hidden struct{ rules []compiled } // for the principal

// maxPrincipals is how many principals are remembered with what is hidden from them.
const maxPrincipals = 1024

// Hidden returns the tools that are hidden from a principal, nil if there are none. It is the
// same for all principals that match the same rules.
func (rs *Rules) Hidden(principal string) *Hidden {
	if !rs.hides {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if h := rs.hiddenFrom[principal]; h != nil {
		return h
	}
	key, h := make([]byte, len(rs.all)), &Hidden{}
	for i := range rs.all {
		if rs.all[i].isFor(principal) {
			key[i] = 1
			h.rules = append(h.rules, rs.all[i])
		}
	}
	if same := rs.hidden[string(key)]; same != nil {
		h = same
	}
	rs.hidden[string(key)] = h
	if len(rs.hiddenFrom) >= maxPrincipals {
		clear(rs.hiddenFrom)
	}
	rs.hiddenFrom[principal] = h
	return h
}

// HiddenFrom implements rule.Rules.
func (rs *Rules) HiddenFrom(principal string) rule.Hider {
	if h := rs.Hidden(principal); h != nil {
		return h
	}
	return nil
}

// hides reports whether the rule refuses all calls of the tools that it matches.
func (r *compiled) hides() bool {
	return r.do == schema.PolicyDeny && r.isForAnyCall()
}

// isForAnyCall reports whether the rule has no condition on the host, the surface or the arguments.
func (r *compiled) isForAnyCall() bool {
	return r.host == nil && r.surface == nil && r.arguments == nil
}

// MayHide reports whether a tool of the server could be hidden.
func (h *Hidden) MayHide(server string) bool {
	for i := range h.rules {
		if r := &h.rules[i]; r.hides() && (r.server == nil || r.server.MatchString(server)) {
			return true
		}
	}
	return false
}

// Hides reports whether a tool is hidden. class is one of toolglob.Classes.
func (h *Hidden) Hides(server, tool, class string) bool {
	for i := range h.rules {
		switch r := &h.rules[i]; {
		case !r.isAbout(server, tool, class):
		case r.hides():
			return true
		case r.do != schema.PolicyDeny: // for some hosts, surfaces or arguments
			return false
		}
	}
	return false
}
