package importing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// readServers reads the servers of the named hosts, or of all hosts if none is named, and
// reports on each file. Finding no server is an error if a host was named, or a file that is no
// host's, or if a file could not be read.
func (m *importer) readServers(ctx context.Context, names []string) ([]hosts.Server, error) {
	chosen, err := chooseHosts(ctx, names, m.from)
	if err != nil {
		return nil, err
	}
	var all []hosts.Server
	wanted := len(names) > 0 || m.from != ""
	for _, h := range chosen {
		files := []string{m.from}
		if m.from == "" {
			if files, err = h.Files(); err != nil {
				return nil, err
			}
		}
		for _, path := range files {
			servers, notes, err := h.Read(ctx, path)
			switch {
			case errors.Is(err, fs.ErrNotExist) && m.from == "":
				continue
			case err != nil && len(names) == 0 && m.from == "":
				m.errOut.Printf("%s: %v\n", h.Title, err)
				wanted = true
				continue
			case err != nil:
				return nil, err
			}
			m.errOut.Printf("%s: %d in %s\n", h.Title, len(servers), path)
			for _, note := range notes {
				m.errOut.Printf("%s: %s\n", h.Title, note)
			}
			for _, s := range servers {
				if what := s.Aggregator(); what != "" {
					m.errOut.Printf("%s from %s is left out: it is %s\n", s.Name, path, what)
					continue
				}
				all = append(all, s)
			}
		}
	}
	switch {
	case len(all) > 0 || !wanted:
	case m.from != "" && chosen[0].Name != "": // as hosts take it
		return nil, nil
	case m.from != "":
		return nil, fmt.Errorf("no servers found in %s", m.from)
	default:
		return nil, hint.With(errors.New("no servers found"), "name a host's file with --from")
	}
	return selectServers(all, m.servers)
}

// chooseHosts returns the hosts to read. If no host is named for the file from, its content
// decides.
func chooseHosts(ctx context.Context, names []string, from string) ([]hosts.Host, error) {
	if from != "" && len(names) > 1 {
		return nil, hint.With(errors.New("--from names one file, of one host"), "name one host")
	}
	if from != "" && len(names) == 0 {
		data, err := regular.Read(ctx, from, regular.Large)
		if err != nil {
			return nil, err
		}
		return []hosts.Host{hosts.WhoseFile(from, data)}, nil
	}
	if len(names) == 0 {
		return hosts.All(), nil
	}
	var chosen []hosts.Host
	for _, name := range names {
		h, err := hosts.Among(name, slices.Concat(hosts.Names(), hosts.Programs()))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, h)
	}
	return chosen, nil
}

// selectServers returns the servers called names, or all servers if names is empty.
func selectServers(all []hosts.Server, names []string) ([]hosts.Server, error) {
	if len(names) == 0 {
		return all, nil
	}
	var have []string
	for _, s := range all {
		have = append(have, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, hint.With(fmt.Errorf("no host has a server %q", name), "they have %s", strings.Join(have, ", "))
		}
	}
	return slices.DeleteFunc(all, func(s hosts.Server) bool { return !slices.Contains(names, s.Name) }), nil
}

// printNextSteps prints the steps that remain after an import: describe the servers, put
// dynmcp into the hosts, and take the originals out.
func (m *importer) printNextSteps(servers []hosts.Server) {
	var eager, commands []string
	for _, s := range servers {
		if !s.Lazy() && !s.Disabled {
			eager = append(eager, s.Name)
		}
		if command := installLine(s, m.file.Path); !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	m.errOut.Printf("What is left to do:\n")
	if len(eager) > 0 {
		start := "start"
		if len(eager) == 1 {
			start = "starts"
		}
		m.errOut.Printf("- %s without a description %s with every host: %s. Give each a \"description\" that says what it does and when to use it, "+
			"and it starts only when it is needed; dynmcp import --lazy --force proposes them\n", display.Plural(len(eager), "server"), start, strings.Join(eager, ", "))
	} else {
		m.errOut.Printf("- read the descriptions: a model reads them in every session\n")
	}
	m.errOut.Printf("- put dynmcp into the hosts, and take the originals out of them, which would have every tool twice:\n")
	for _, command := range commands {
		m.errOut.Printf("  %s\n", command)
	}
}

// installLine returns the command that replaces s in its host by dynmcp with config.
func installLine(s hosts.Server, config string) string {
	config = shellescape.Quote(config)
	if !s.Host.IsHost() {
		return "dynmcp install HOST -c " + config
	}
	command := "dynmcp install " + s.Host.Name + " -c " + config + " --take-over"
	switch user, err := s.Host.UserFile(); {
	case err == nil && hosts.SameFile(s.File, user):
		return command
	case s.File == filepath.FromSlash(s.Host.Project):
		return command + " --project"
	}
	return command + " --file " + shellescape.Quote(s.File)
}
