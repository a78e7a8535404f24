package selfhost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// ServerOfTool returns the server of the tool called name. In single-wrap mode names of tools have
// no prefix.
func ServerOfTool(cfg *schema.Config, name string) (string, error) {
	if cfg.SingleWrap {
		return cfg.Servers[0].Name, nil
	}
	server, _, ok := strings.Cut(name, "/")
	s, err := conf.ServerNamed(cfg, server)
	switch {
	case !ok && err == nil:
		return "", hint.With(fmt.Errorf("%q is a server, not a tool", name), "write %s/tool; dynmcp test %s lists its tools", name, name)
	case !ok:
		return "", hint.With(fmt.Errorf("%q is not the name of a tool", name), "write server/tool; dynmcp find %s searches for it", name)
	case err == nil && s.Off != nil:
		return "", conf.OffError(s)
	case err == nil && s.Disabled:
		return "", hint.With(fmt.Errorf("%s is disabled", server), `remove "disabled" from its entry in %s`, cfg.Path)
	}
	return server, err
}

// UnknownTool is the error of a tool that a view of its server does not have.
func UnknownTool(view *catalog.View, name string) error {
	if why := catalog.WhyNotApproved(view, name); why != "" {
		return fmt.Errorf("%s is not called: %s", name, why)
	}
	err := fmt.Errorf("unknown tool %q", name)
	if near := view.Nearest(name, 3); len(near) > 0 {
		return hint.With(err, "did you mean %s?", toolNames(near))
	}
	if all := view.Tools(); len(all) > 0 && len(all) <= 10 {
		return hint.With(err, "its tools are: %s", toolNames(all))
	}
	return hint.With(err, "the server has %d tools; dynmcp test lists them", len(view.Tools()))
}

func toolNames(tools []*catalog.Tool) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// StartTool starts the server of a tool, and returns the tool. The caller must close the Host.
func (t *Target) StartTool(ctx context.Context, name string) (*Host, *catalog.Tool, error) {
	server, err := ServerOfTool(t.Cfg, name)
	if err != nil {
		return nil, nil, err
	}
	h, failed, err := t.Start(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	tool, ok := h.View().Tool(name)
	if info, _ := h.View().Server(server); !ok && info.Stored { // the tool may be newer than the stored listing
		waiting := terminal.ShowProgress(t.ErrOut, "starting "+server)
		failed = h.Load(ctx, func(string) {}, server)
		waiting.End()
		tool, ok = h.View().Tool(name)
	}
	switch {
	case failed[server] != nil:
		err = failed[server]
	case !ok:
		err = UnknownTool(h.View(), name)
	default:
		return h, tool, nil
	}
	h.Close()
	return nil, nil, err
}

// completionWait is the timeout for starting a server to complete the names of its tools.
const completionWait = 10 * time.Second

// nothing keeps shells from offering file names.
const nothing = cobra.ShellCompDirectiveNoFileComp

// CompleteTools completes the names of servers and, after a slash, of the tools of that server. It
// starts the server unless its listing is stored.
func CompleteTools(on *Target) cobra.CompletionFunc {
	servers := conf.CompleteServers(&on.Flags, "/")
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		name, _, ok := strings.Cut(word, "/")
		if !ok || len(args) > 0 {
			return servers(cmd, args, word)
		}
		from := on.Flags
		from.AsWritten = false // the server may be started here even if the verb starts nothing
		cfg, err := from.Load(cmd.Context())
		if err != nil {
			return nil, nothing
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		h, err := Start(ctx, OnlyServers(cfg, name), nil)
		if err != nil {
			return nil, nothing
		}
		defer h.Close()
		if info, _ := h.View().Server(name); !info.Stored && h.LoadOne(ctx, name) != nil {
			return nil, nothing
		}
		var words []string
		for _, tool := range h.View().ServerTools(name) {
			words = append(words, cobra.CompletionWithDesc(tool.Name, tool.Summary))
		}
		return words, nothing
	}
}

// CompleteCall is CompleteTools, and completes the arguments of the tool that is named, and their values
// where the schema lists them. It starts nothing for these.
func CompleteCall(on *Target) cobra.CompletionFunc {
	tools := CompleteTools(on)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return tools(cmd, args, word)
		}
		from := on.Flags
		from.AsWritten = true
		cfg, err := from.Load(cmd.Context())
		if err != nil {
			return nil, nothing
		}
		server, _, _ := strings.Cut(args[0], "/")
		h, err := Start(cmd.Context(), OnlyServers(cfg, server), nil)
		if err != nil {
			return nil, nothing
		}
		defer h.Close()
		var input struct {
			Properties map[string]struct {
				Type, Description any
				Enum              []any
			}
		}
		tool, ok := h.View().Tool(args[0])
		if !ok || json.Unmarshal(tool.InputSchema, &input) != nil {
			return nil, nothing
		}
		var words []string
		for _, key := range slices.Sorted(maps.Keys(input.Properties)) {
			p := input.Properties[key]
			if p.Type == "boolean" && p.Enum == nil {
				p.Enum = []any{true, false}
			}
			given := func(arg string) bool { return strings.HasPrefix(arg, key+"=") || strings.HasPrefix(arg, key+":=") }
			switch about, _ := p.Description.(string); {
			case given(word):
				for _, value := range p.Enum {
					words = append(words, fmt.Sprintf("%s=%v", key, value))
				}
				return words, nothing
			case !slices.ContainsFunc(args[1:], given):
				words = append(words, cobra.CompletionWithDesc(key+"=", terminal.OneLine(about)))
			}
		}
		return words, nothing | cobra.ShellCompDirectiveNoSpace
	}
}
