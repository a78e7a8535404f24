package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/call"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/modules/policy/rules"
	"github.com/dynmcp/dynmcp/schema"
)

// verb shows the effect of the policy on a call.
var verb = cli.Verb{
	Use:   "policy",
	Group: cli.Guard,
	Short: "Explain a policy decision",
	Long: `The policy of a config says which calls of tools are made, which a person is asked
about, and which are refused. Without a subcommand, its rules are listed with the known
tools that each catches. Nothing is started.`,
	Example: `  dynmcp policy
  dynmcp policy test github/delete_repo`,
	Verbs: []cli.Verb{testVerb},
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}}
		return on.Run(cmd, func(ctx context.Context, _ []string) error { return listRules(ctx, &on, conf.Wanted(on.Cfg)) })
	},
}

var testVerb = cli.Verb{
	Use:   "test [flags] SERVER | SERVER/TOOL [key=value… | -]",
	Short: "Show which policy rule decides about a call",
	Long: `Show which policy rule decides about a call, without making it. Nothing is
started: what a tool may do is known where its server was started before.
Arguments are written as those of dynmcp call. Of a SERVER alone, the tools that each
rule catches are listed.`,
	Example: `  dynmcp policy test github/delete_repo
  dynmcp policy test db/query 'sql=drop table users' --principal ci`,
	Args: cobra.ArbitraryArgs,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}, Stored: true}
		var asked rule.Call
		cmd.Flags().String("arguments", "", "the arguments as a JSON `object`; - reads it from stdin")
		cmd.Flags().StringVar(&asked.Principal, "principal", "", "the `user` whose call it is")
		cmd.Flags().StringVar(&asked.Host, "host", "", "the `name` that the host gives itself")
		cmd.Flags().StringVar(&asked.Surface, "surface", schema.ExposeDiscover, "the `surface` that it comes by")
		asJSON := cmd.Flags().Bool("json", false, "print one JSON object")
		cmd.ValidArgsFunction = selfhost.CompleteCall(&on)
		return on.Run(cmd, func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return hint.With(errors.New("no tool given"), "dynmcp policy test <server/tool> [key=value…]; dynmcp find WORDS finds tools")
			}
			if s, err := conf.ServerNamed(on.Cfg, args[0]); err == nil && len(args) == 1 && !on.Cfg.SingleWrap {
				return listRules(ctx, &on, []schema.Server{s})
			}
			input, err := call.ReadObject(cmd, "arguments", args[1:])
			if err != nil {
				return err
			}
			tool, err := judgedTool(ctx, &on, args[0], &asked)
			if err != nil {
				return err
			}
			if asked.Arguments = input; input == nil {
				asked.Arguments = call.ArgumentObject(args[1:], tool.InputSchema)
			}
			return writeVerdict(on.Out, schema.Keys[rules.Keys](on.Cfg).Policy, &asked, *asJSON)
		})
	},
}

// listRules prints each rule with the known tools of servers that it catches. A tool is listed at every
// rule whose other conditions may hold, until one that decides in any case.
func listRules(ctx context.Context, t *selfhost.Target, servers []schema.Server) error {
	from := schema.Keys[rules.Keys](t.Cfg).Policy
	if len(from) == 0 {
		t.Out.Printf("the config has no policy: all calls are allowed\n")
		return t.Out.Err
	}
	compiled, err := rules.New(from)
	if err != nil {
		return err
	}
	all := rule.Without(selfhost.OnlyServers(t.Cfg, conf.Names(servers)...)) // which would hide what they deny
	h, err := selfhost.Start(ctx, all, t.Log)
	if err != nil {
		return err
	}
	defer h.Close()
	decided := map[string]bool{}
	for i := range from {
		text, err := json.Marshal(shown(from[i]))
		if err != nil {
			return err
		}
		t.Out.Printf("rule %d: %s\n", i+1, text)
		for _, tool := range h.View().Tools() {
			names, last := compiled.Names(i+1, tool.Server, tool.Upstream, tool.Class)
			if !names || decided[tool.Name] {
				continue
			}
			decided[tool.Name] = last
			t.Out.Printf("  %s %s\n", terminal.OneLine(tool.Name), classNotes[tool.Class])
		}
	}
	for _, s := range servers {
		if info, ok := h.View().Server(s.Name); ok && !info.Stored {
			t.ErrOut.Say("%s has not been listed yet: dynmcp test --store %s lists its tools", s.Name, s.Name)
		}
	}
	return t.Out.Err
}

// classNotes say what is known of the tools of a class.
var classNotes = map[string]string{
	"@readonly": "(@readonly)", "@write": "(@write)", toolglob.Declared: "(" + toolglob.Declared + ")",
	"@destructive": "(@destructive: its server does not say)",
}

// judgedTool returns the tool called name from the stored listing, and sets it in call.
func judgedTool(ctx context.Context, t *selfhost.Target, name string, call *rule.Call) (*catalog.Tool, error) {
	server, err := selfhost.ServerOfTool(t.Cfg, name)
	if err != nil {
		return nil, err
	}
	known := rule.Without(selfhost.OnlyServers(t.Cfg, server)) // which would hide what they deny
	h, err := selfhost.Start(ctx, known, t.Log)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	tool, ok := h.View().Tool(name)
	if !ok {
		t.ErrOut.Say("%s is not known: it counts as destructive, and no schema says what its arguments are", display.Name(name))
		call.Server, call.Tool, call.Class = server, strings.TrimPrefix(name, server+"/"), toolglob.Classes[toolglob.Destructive]
		return &catalog.Tool{}, nil
	}
	call.Server, call.Tool, call.Class = tool.Server, tool.Upstream, tool.Class
	return tool, nil
}

// A shownRule is a policy rule in the form of the config.
type shownRule struct {
	Match     string          `json:"match,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Host      string          `json:"host,omitempty"`
	Surface   string          `json:"surface,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Do        string          `json:"do"`
}

func shown(r rules.PolicyRule) *shownRule {
	return &shownRule{r.Match, r.Principal, r.Host, r.Surface, r.Arguments, r.Do}
}

func writeVerdict(out *terminal.Writer, from []rules.PolicyRule, call *rule.Call, asJSON bool) error {
	compiled, err := rules.Keys{Policy: from}.Rules()
	if err != nil {
		return err
	}
	v, err := rule.Judge(compiled, call)
	if err != nil {
		return err
	}
	answer := struct {
		Do        string          `json:"do"`
		Number    int             `json:"rule_number,omitempty"`
		Rule      *shownRule      `json:"rule,omitempty"`
		Why       string          `json:"why,omitempty"`
		Class     string          `json:"class"`
		Arguments json.RawMessage `json:"arguments"`
	}{Do: v.Do, Number: v.Rule, Why: v.Why, Class: call.Class, Arguments: call.Arguments}
	if v.Rule > 0 {
		answer.Rule = shown(from[v.Rule-1])
	}
	if asJSON {
		return terminal.WriteJSON(out, answer)
	}
	if answer.Rule == nil {
		out.Printf("%s: the config has no policy\n", v.Do)
		return out.Err
	}
	rule, err := json.Marshal(answer.Rule)
	if err != nil {
		return err
	}
	out.Printf("%s: rule %d decides\n  %s\n", v.Do, v.Rule, rule)
	if v.Why != "" {
		out.Printf("  the arguments are ambiguous: %s\n", v.Why)
	}
	return out.Err
}
