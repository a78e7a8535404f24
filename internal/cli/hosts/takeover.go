package hosts

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// TakeOver removes the servers that are also in config from the text of the host's file at
// path. It returns the new text, the titles of the removed servers, and those of the servers
// that config lacks or has otherwise. The server called name and other entries of dynmcp
// stay, and are in neither list.
func (h Host) TakeOver(ctx context.Context, path string, text []byte, name string, config []schema.Server) (out []byte, taken, left []string, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return text, nil, nil, nil
	}
	h.sections = module.SectionsOf(ctx)
	servers, err := h.parseAll(path, text)
	if err != nil {
		return nil, nil, nil, err
	}
	out = text
	for _, s := range servers {
		if s.Key == name || s.Aggregator() != "" {
			continue
		}
		if !slices.ContainsFunc(config, s.isTheSame) {
			left = append(left, s.title())
			continue
		}
		if out, err = h.remove(path, out, s.place()); err != nil {
			return nil, nil, nil, err
		}
		taken = append(taken, s.title())
	}
	return out, taken, left, nil
}

// title returns the name of the server in its file, with the directory of its project in
// parentheses.
func (s *Server) title() string {
	if dir := s.project(); dir != "" {
		return s.Key + " (" + dir + ")"
	}
	return s.Key
}

// in reports whether one of servers has the same place as s.
func (s *Server) in(servers []Server) bool {
	return slices.ContainsFunc(servers, func(t Server) bool { return slices.Equal(t.place(), s.place()) })
}

var anyReference = lazyregexp.New(`\$\{[^}]*\}`)

// isTheSame reports whether other starts the same program as s, or connects to the same
// address. A secret in one may be a reference to a variable in the other.
func (s Server) isTheSame(other schema.Server) bool {
	hidden := func(t schema.Server) schema.Server {
		t = t.ReplaceSecrets(func(schema.SecretUse) string { return "***" })
		plain := func(text string) string { return anyReference().ReplaceAllString(text, "***") }
		t.Command, t.URL, t.Cwd = plain(t.Command), plain(t.URL), plain(t.Cwd)
		for i, arg := range t.Args {
			t.Args[i] = plain(arg)
		}
		for _, values := range []map[string]string{t.Env, t.Headers} {
			for key, value := range values {
				values[key] = plain(value)
			}
		}
		return t
	}
	a, b := hidden(s.Server), hidden(other)
	return a.Name == b.Name && a.Command == b.Command && a.URL == b.URL && (a.Cwd == b.Cwd || a.Cwd == "" && b.Cwd == s.folder) && slices.Equal(a.Args, b.Args) &&
		maps.Equal(a.Env, b.Env) && maps.Equal(a.Headers, b.Headers)
}

// Restore returns the text of a host's file as it was before dynmcp was added as name. That
// is the newest backup from which text differs only by the installation; backups are sorted
// from old to new. If there is none, dynmcp is removed, and the servers of the newest backup
// without dynmcp for which wanted returns true are put back; restored are their titles.
func (h Host) Restore(ctx context.Context, path string, text []byte, name string, backups [][]byte, wanted func(key string) bool) (out []byte, restored []string, err error) {
	h.sections = module.SectionsOf(ctx)
	backups = slices.DeleteFunc(slices.Clone(backups), func(backup []byte) bool {
		servers, err := h.parseAll(path, backup)
		return err != nil || slices.ContainsFunc(servers, func(s Server) bool { return s.Key == name })
	})
	if before := h.unchangedSince(path, text, name, backups); before != nil {
		return before, nil, nil
	}
	if out, err = h.remove(path, text, append(slices.Clone(h.path(path, text)), name)); err != nil {
		return nil, nil, err
	}
	if len(backups) == 0 {
		return out, nil, nil
	}
	newest := backups[len(backups)-1]
	servers, err := h.parseAll(path, newest)
	if err != nil {
		return nil, nil, err
	}
	now, err := h.parseAll(path, out)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range servers {
		if s.in(now) || !wanted(s.Name) {
			continue
		}
		if out, err = h.putBack(path, out, newest, s.place()); err != nil {
			return nil, nil, err
		}
		restored = append(restored, s.title())
	}
	return out, restored, nil
}

// unchangedSince returns the newest of the backups from which text differs only by the
// installation of dynmcp, or nil.
func (h Host) unchangedSince(path string, text []byte, name string, backups [][]byte) []byte {
	for _, backup := range slices.Backward(backups) {
		if out, err := h.reinstall(path, backup, text, name); err == nil && bytes.Equal(out, text) {
			return backup
		}
	}
	return nil
}

// reinstall repeats the installation on a backup: it removes the servers that text lacks, and
// adds dynmcp as it is in text.
func (h Host) reinstall(path string, backup, text []byte, name string) ([]byte, error) {
	old, err := h.parseAll(path, backup)
	if err != nil {
		return nil, err
	}
	now, err := h.parseAll(path, text)
	if err != nil {
		return nil, err
	}
	out := backup
	for _, s := range old {
		if s.Key != name && !s.in(now) {
			if out, err = h.remove(path, out, s.place()); err != nil {
				return nil, err
			}
		}
	}
	i := slices.IndexFunc(now, func(s Server) bool { return s.Key == name })
	if i < 0 {
		return out, nil
	}
	if !h.isTOML() {
		return h.putBack(path, out, text, now[i].place())
	}
	return h.Set(path, out, name, now[i].Command, now[i].Args)
}

// putBack copies the server at place from another version of the file into text.
func (h Host) putBack(path string, text, from []byte, place []string) ([]byte, error) {
	if h.isTOML() {
		return appendTable(text, from, place)
	}
	value, err := syntax.GetJSON(path, from, place)
	if err != nil {
		return nil, err
	}
	return syntax.SetJSON(path, text, place, value)
}
