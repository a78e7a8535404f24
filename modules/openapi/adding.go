package openapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// An adding is the form of add for servers of OpenAPI documents. It implements module.Adder.
type adding struct {
	document string
	tags     []string
}

func newAdder() module.Adder { return &adding{} }

func (a *adding) Takes(string) bool { return a.document != "" }

func (a *adding) Flags() (goWith, remedy string) {
	return "--openapi", "dynmcp add NAME --openapi https://api.example.com/openapi.json"
}

func (a *adding) Help() (long, example string) {
	return `--openapi makes a server of an HTTP API: the operations of its OpenAPI document are the tools.
add reads the document and shows how many operations it has, by tag, and what they cost.
--tags takes those of some tags only; on a terminal, add asks for them. See docs/openapi.md.`,
		`  dynmcp add pets --openapi https://api.example.com/openapi.json --tags pets \
    --header 'Authorization: Bearer ${TOKEN}'`
}

func (a *adding) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.document, "openapi", "", "the `address` or file of an OpenAPI document; --url is where its operations are sent")
	cmd.Flags().StringSliceVar(&a.tags, "tags", nil, "take the operations of these `tags` of the document only")
}

// Entry makes the entry for the document, and shows its operations.
func (a *adding) Entry(cmd *cobra.Command, name string, given module.Given) (s schema.Server, keep func() error, err error) {
	if given.Program || len(given.Env) > 0 || given.Sandbox {
		return s, nil, hint.With(errors.New("a command, --transport, --env and --sandbox do not go with --openapi"), "the document says what the server does; --url and --header say how it is reached")
	}
	if !schema.IsAddress(a.document) {
		if a.document, err = filepath.Abs(a.document); err != nil {
			return s, nil, err
		}
	}
	s = schema.Server{Name: name, Transport: schema.StreamableHTTP, OpenAPI: a.document, URL: given.URL, Headers: given.Headers, Description: given.Description}
	if err := s.Check(); err != nil {
		return s, nil, err
	}
	var found *api
	err = cli.Interruptibly(cmd, func(ctx context.Context) error {
		found, err = a.read(ctx, s)
		return err
	})
	if err != nil {
		return s, nil, err
	}
	tags := tagsOf(found.all)
	for _, tag := range a.tags {
		if !slices.ContainsFunc(tags, func(t tagCost) bool { return strings.EqualFold(t.tag, tag) }) {
			return s, nil, hint.With(fmt.Errorf("no operation has the tag %q", tag), "without --tags, add shows the tags")
		}
	}
	asked := len(a.tags) == 0 && len(tags) > 1 && cli.Asks(cmd)
	a.show(cmd, found, tags, asked)
	if asked {
		if a.tags, err = ask(cmd, tags); err != nil {
			return s, nil, err
		}
	}
	if len(a.tags) > 0 {
		s.ToolFilter = a.filter(found.all)
	}
	s.Description, s.Transport = cmp.Or(s.Description, describe(found, a.tags)), "" // which the document implies
	return s, func() error { return nil }, nil
}

// read reads the document of an entry as a run would, but without headers that refer to variables.
func (a *adding) read(ctx context.Context, s schema.Server) (*api, error) {
	if !schema.IsAddress(s.OpenAPI) {
		srv := &server{entry: s}
		var err error
		if srv.at.url, err = url.Parse(s.URL); err != nil {
			return nil, err
		}
		now, err := srv.readFile(ctx)
		if err != nil {
			return nil, err
		}
		return srv.apiOf(now, nil)
	}
	s.Headers = maps.Clone(s.Headers)
	maps.DeleteFunc(s.Headers, func(_, value string) bool { return strings.Contains(value, "${") })
	s.LoadTimeout = readTime
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	keeping := &keeper{}
	conn, err := upstream.Open(s, upstream.ConnOptions{Info: upstream.Info{Name: "dynmcp", Version: cli.Version}, HandshakeOnly: true, Redact: &cli.Secrets, Adapter: keeping})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Handshake(ctx, nil); err != nil {
		return nil, err
	}
	return keeping.made.api(), nil
}

// readTime is how long add waits for a document.
const readTime = time.Minute

// A keeper is an adapter that keeps the server it makes.
type keeper struct {
	adapter
	made *server
}

func (k *keeper) Open(entry schema.Server, web *upstream.Web) (upstream.Adapted, error) {
	made, err := k.adapter.Open(entry, web)
	if err != nil {
		return nil, err
	}
	k.made = made.(*server)
	return made, nil
}

// A tagCost is what the operations of a tag cost.
type tagCost struct {
	tag        string
	operations int
	tokens     int
}

// untagged is shown for operations without a tag.
const untagged = "(no tag)"

// tagsOf returns the tags of operations by name. An operation counts for its first.
func tagsOf(all []*operation) (tags []tagCost) {
	at := map[string]int{}
	for _, op := range all {
		tag := untagged
		if len(op.Tags) > 0 {
			tag = op.Tags[0]
		}
		i, known := at[tag]
		if !known {
			i = len(tags)
			at[tag] = i
			tags = append(tags, tagCost{tag: tag})
		}
		tags[i].operations++
		tags[i].tokens += tokens.Count(string(op.Tool))
	}
	slices.SortFunc(tags, func(a, b tagCost) int { return strings.Compare(a.tag, b.tag) })
	return tags
}

// has reports whether an operation is taken.
func (a *adding) has(op *operation) bool {
	tag := untagged
	if len(op.Tags) > 0 {
		tag = op.Tags[0]
	}
	return len(a.tags) == 0 || slices.ContainsFunc(a.tags, func(t string) bool { return strings.EqualFold(t, tag) })
}

// show shows what the document has, with or without numbers.
func (a *adding) show(cmd *cobra.Command, found *api, tags []tagCost, numbered bool) {
	out := cli.Stdout(cmd)
	out.Printf("%s %s: %s\n", cmp.Or(found.title, "The document"), found.version, display.Plural(len(found.all), "operation"))
	taken, cost := 0, 0
	for i, t := range tags {
		mark := " "
		if numbered {
			mark = fmt.Sprintf("%3d", i+1)
		}
		if len(a.tags) > 0 && slices.ContainsFunc(a.tags, func(tag string) bool { return strings.EqualFold(tag, t.tag) }) {
			mark = "*"
		}
		if mark == "*" || len(a.tags) == 0 {
			taken, cost = taken+t.operations, cost+t.tokens
		}
		out.Printf("%s %-30s %16s %8d tokens\n", mark, t.tag, display.Plural(t.operations, "operation"), t.tokens)
	}
	out.Printf("%d tools, %d tokens if a host lists them all; behind dynmcp a model reads those it asks for\n", taken, cost)
}

// ask asks on a terminal which tags to take. An empty line takes all.
func ask(cmd *cobra.Command, tags []tagCost) ([]string, error) {
	for lines, out := bufio.NewReader(cmd.InOrStdin()), cli.Stderr(cmd); ; {
		out.Printf("Which tags? Names or numbers with commas [all] ")
		answer, err := lines.ReadString('\n')
		if err != nil && answer == "" {
			return nil, errors.New("nothing was added")
		}
		chosen, unknown := chosenTags(answer, tags)
		if unknown == "" {
			return chosen, nil
		}
		out.Say("no operation has the tag %q", unknown)
	}
}

// chosenTags returns the tags that an answer names; unknown is what names none of them.
func chosenTags(answer string, tags []tagCost) (chosen []string, unknown string) {
	for word := range strings.SplitSeq(answer, ",") {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(tags, func(t tagCost) bool { return strings.EqualFold(t.tag, word) })
		if n, err := strconv.Atoi(word); i < 0 && err == nil && 1 <= n && n <= len(tags) {
			i = n - 1
		}
		switch {
		case i >= 0:
			chosen = append(chosen, tags[i].tag)
		case word != "" && !strings.EqualFold(word, "all"):
			return nil, word
		}
	}
	return chosen, ""
}

// filter returns the tool_filter of the tags: the names of their operations.
func (a *adding) filter(all []*operation) (names []string) {
	for _, op := range all {
		if a.has(op) {
			names = append(names, op.Name)
		}
	}
	return names
}

// describe returns a description for the model: the title, and the tags, or only some.
func describe(found *api, only []string) string {
	var names []string
	for _, t := range tagsOf(found.all) {
		if t.tag != untagged && (len(only) == 0 || slices.ContainsFunc(only, func(tag string) bool { return strings.EqualFold(tag, t.tag) })) {
			names = append(names, t.tag)
		}
	}
	text := cmp.Or(found.title, "An HTTP API")
	if len(names) > 0 {
		text += ": " + strings.Join(names[:min(len(names), 12)], ", ")
	}
	return strings.Join(strings.Fields(text), " ") + "."
}
