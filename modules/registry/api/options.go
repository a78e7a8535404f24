package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// An Option is a way to run a server.
type Option struct {
	Via     string // one of Ways, or the type of a package that dynmcp does not run
	What    string // the package or the address
	Missing string // why it cannot be run here, "" if it can
	Note    string // what a person should know about it

	server  *Server
	pkg     *Package
	remote  *Transport
	bundle  *bundle // set by Unpack
	program string  // the program that runs the package
	spec    string  // the package, as an argument of the program
}

// Options returns the ways to run a server: those that are possible here before the others, each
// in the order of Ways. installed reports whether a program is installed.
func (s *Server) Options(installed func(program string) bool) []*Option {
	var all []*Option
	for i := range s.Packages {
		o := &Option{server: s, pkg: &s.Packages[i], Via: line(s.Packages[i].RegistryType, 20)}
		o.check(installed)
		all = append(all, o)
	}
	for i := range s.Remotes {
		o := &Option{server: s, remote: &s.Remotes[i], Via: Remote, What: line(s.Remotes[i].URL, 200)}
		if t := o.remote.Type; t != "streamable-http" && t != "sse" {
			o.Missing = fmt.Sprintf("dynmcp does not speak %q", line(t, 40))
		}
		all = append(all, o)
	}
	rank := func(o *Option) int {
		n := 2 * slices.Index(Ways, o.Via)
		if o.Missing != "" || n < 0 {
			n += 4 * len(Ways)
		}
		if o.remote != nil && o.remote.Type == "sse" {
			n++ // streamable HTTP goes first
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b *Option) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// check finds the program that runs a package, and what is missing for it.
func (o *Option) check(installed func(program string) bool) {
	p := o.pkg
	o.What = line(strings.TrimSuffix(p.Identifier+" "+p.Version, " "), 200)
	switch {
	case p.RegistryType == MCPB:
		o.Missing = p.checkBundle()
	case programs[p.RegistryType] == nil:
		o.Missing = fmt.Sprintf("dynmcp runs no packages of %q; install it, and add its command with dynmcp add NAME -- COMMAND", o.Via)
	default:
		var err error
		if o.spec, err = p.spec(); err == nil {
			o.program, o.Note, err = p.program()
		}
		switch {
		case err != nil:
			o.Missing = err.Error()
		case !installed(o.program):
			o.Missing = o.program + " is not installed"
		}
	}
	if p.FileSHA256 != "" && p.RegistryType != MCPB && o.Missing == "" && o.Note == "" {
		o.Note = fmt.Sprintf("%s fetches the package itself, so the registry's SHA-256 is not compared", o.program)
	}
	if t := p.Transport; o.Missing == "" && t.Type != "stdio" && t.Type != "" {
		o.Missing = fmt.Sprintf("it is not spoken to by stdio but at %s: start it, and add that address with dynmcp add NAME --url ADDRESS", line(t.URL, 100))
	}
}

// checkBundle returns why a bundle cannot be fetched, "" if it can.
func (p Package) checkBundle() string {
	u, err := url.Parse(p.Identifier)
	switch {
	case err != nil || u.Host == "":
		return "its bundle has no address"
	case !isSHA256(p.FileSHA256):
		return "the registry does not say the SHA-256 of its bundle"
	}
	return ""
}

// Questions returns the questions that Build needs answers to. Those of a bundle are known only
// after Unpack.
func (o *Option) Questions() ([]Question, error) {
	r := &resolver{}
	o.resolve(r)
	return r.questions, r.err
}
